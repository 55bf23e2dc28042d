// dptrain compare: what it prints of two runs, and its exit codes.
#include <cmath>

#include <doctest/doctest.h>

#include "cli/process.h"
#include "formats/safetensors.h"

namespace dpt {
namespace {

const std::string kSpec = R"(name: small
data:
  dataset: {synthetic_images: {samples: 200, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 40
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.1}
epochs: 2
reproducible: {shards: 2}
)";

void save(const std::string& path, const std::vector<float>& weight, float bias) {
  const NamedTensor tensors[] = {
      {"0.weight", {DType::f32, {2, 3}}, reinterpret_cast<const std::byte*>(weight.data())},
      {"0.bias", {DType::f32, {1}}, reinterpret_cast<const std::byte*>(&bias)}};
  write_safetensors(path, tensors);
}

Finished compare(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"compare"};
  all.insert(all.end(), words.begin(), words.end());
  return dptrain(all);
}

TEST_CASE("compare tells where losses and weights part") {
  const Folder folder;
  const std::string a = folder.path() + "/a", b = folder.path() + "/b";
  folder.write("a/metrics.jsonl",
               "{\"step\": 1, \"epoch\": 1, \"loss\": 2.5, \"lr\": 0.1}\n"
               "{\"step\": 2, \"epoch\": 1, \"loss\": 2.25, \"lr\": 0.1}\n"
               "{\"step\": 3, \"epoch\": 1, \"loss\": 2.125, \"lr\": 0.1}\n"
               "{\"epoch\": 1, \"loss\": 2.29166667, \"seconds\": 0.1, \"steps\": 3}\n");
  folder.write("b/metrics.jsonl",
               "{\"step\": 1, \"loss\": 2.5}\n"
               "{\"step\": 2, \"loss\": 2.25000024}\n"
               "{\"step\": 3, \"loss\": 2.5}\n"
               "{\"step\": 4, \"loss\": 2.4}\n");
  save(a + "/model.safetensors", {1, 2, 3, 4, 5, 6}, 0.5F);
  save(b + "/model.safetensors", {1, 2, 3, 4, 5.5F, std::nextafter(6.0F, 7.0F)}, 0.5F);
  const Finished parted = compare({a, b});
  CHECK(parted.code == 1);
  CHECK(parted.err.empty());
  CHECK(parted.out == R"(losses of 3 steps (A has 3, B 4)
  first that differs          step 2: 2.25 and 2.25000024, 2.4e-07 apart
  first beyond the tolerance  step 3: 2.125 and 2.5, 0.38 apart
  largest distance            step 3: 2.125 and 2.5, 0.38 apart
weights of 2 tensors
  0.weight  f32[2, 3]  2 of 6 differ, 1 beyond the tolerance; by 0.5 at most, 1048576 ulp
  0.bias    f32[1]     same bits
they differ
)");
  // Beside a file of losses only the losses count, beside one of weights only the weights.
  const Finished losses = compare({a, b + "/metrics.jsonl", "--atol=1"});
  CHECK(losses.code == 0);
  CHECK(losses.out == R"(losses of 3 steps (A has 3, B 4)
  first that differs          step 2: 2.25 and 2.25000024, 2.4e-07 apart
  first beyond the tolerance  none
  largest distance            step 3: 2.125 and 2.5, 0.38 apart
the same within rtol 1.3e-06, atol 1
)");
  const Finished weights = compare({a + "/model.safetensors", b, "--rtol=0", "--atol=1e-7"});
  CHECK(weights.code == 1);
  CHECK(weights.out == R"(weights of 2 tensors
  0.weight  f32[2, 3]  2 of 6 differ, 2 beyond the tolerance; by 0.5 at most, 1048576 ulp
  0.bias    f32[1]     same bits
they differ
)");
  const Finished same = compare({a, a, "--rtol=0", "--atol=0"});
  CHECK(same.code == 0);
  CHECK(same.out ==
        "losses of 3 steps: no difference\nweights of 2 tensors: same bits\nthe same\n");
}

TEST_CASE("compare takes epochs where not both have steps, and names tensors that do not match") {
  const Folder folder;
  const std::string a = folder.path() + "/a", b = folder.path() + "/b";
  folder.write("a/metrics.jsonl", "{\"step\": 1, \"loss\": 3}\n{\"epoch\": 1, \"loss\": 2}\n");
  folder.write("b/metrics.jsonl", "{\"epoch\": 1, \"loss\": 2.5}\n");
  save(a + "/model.safetensors", {1, 2, 3, 4, 5, 6}, 0.5F);
  const float weight[] = {1, 2, 3, 4, 5, 6};
  const NamedTensor tensors[] = {
      {"0.weight", {DType::f32, {3, 2}}, reinterpret_cast<const std::byte*>(weight)},
      {"1.weight", {DType::f32, {2}}, reinterpret_cast<const std::byte*>(weight)}};
  write_safetensors(b + "/model.safetensors", tensors);
  const Finished parted = compare({a, b});
  CHECK(parted.code == 1);
  CHECK(parted.out == R"(losses of 1 epoch
  first that differs          epoch 1: 2 and 2.5, 0.5 apart
  first beyond the tolerance  epoch 1: 2 and 2.5, 0.5 apart
  largest distance            epoch 1: 2 and 2.5, 0.5 apart
weights of 3 tensors
  0.weight  f32[2, 3]  f32[3, 2] in B
  0.bias    f32[1]     only in A
  1.weight  f32[2]     only in B
they differ
)");
}

TEST_CASE("compare refuses what can't be compared") {
  const Folder folder;
  const std::string steps = folder.write("s.jsonl", "{\"step\": 1, \"loss\": 3}\n");
  const std::string epochs = folder.write("e.jsonl", "{\"epoch\": 1, \"loss\": 3}\n");
  save(folder.file("m.safetensors"), {1, 2, 3, 4, 5, 6}, 0.5F);
  const auto code = [](const std::vector<std::string>& words, const std::string& message) {
    const Finished f = compare(words);
    CHECK(f.out.empty());
    CHECK_MESSAGE(has(f.err, message), f.err);
    return f.code;
  };
  CHECK(code({steps}, "B is required") == 2);
  CHECK(code({steps, steps, "--rtol=-1"}, "--rtol") == 2);
  CHECK(code({steps, epochs}, "nothing in common to compare") == 2);
  CHECK(code({steps, folder.file("m.safetensors")}, "nothing in common to compare") == 2);
  CHECK(code({folder.path(), steps}, "holds no run") == 4);
  CHECK(code({steps, folder.file("none")}, "none cannot be opened") == 4);
}

TEST_CASE("compare of real runs: the same spec in two modes has the same bits, another seed not") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const auto run = [&](const std::string& name, const std::vector<std::string>& how) {
    std::vector<std::string> words = {folder.file("t.yaml"), "log.every=1",
                                      "out=" + folder.file(name)};
    words.insert(words.end(), how.begin(), how.end());
    const Finished f = dptrain(words);
    CHECK_MESSAGE(f.code == 0, f.err);
    return folder.file(name);
  };
  const std::string single = run("single", {"cores=1"});
  const Finished same = compare({single, run("ddp", {"parallel=ddp", "devices=2", "cores=1"})});
  CHECK(same.code == 0);
  CHECK(same.out ==
        "losses of 10 steps: no difference\nweights of 2 tensors: same bits\nthe same\n");
  const Finished other = compare({single, run("other", {"seed=1", "cores=1"})});
  CHECK(other.code == 1);
  CHECK(has(other.out, "  first that differs          step 1: "));
  CHECK(other.out.ends_with("they differ\n"));
}

TEST_CASE("all steps are recorded, more than are kept before they are written") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::string out = folder.file("run");
  const Finished f = dptrain({folder.file("t.yaml"), "log.every=2", "data.batch_size=1",
                              "data.dataset.samples=2500", "epochs=1", "out=" + out});
  CHECK_MESSAGE(f.code == 0, f.err);
  const Finished same = compare({out, out});
  CHECK(has(same.out, "losses of 1250 steps: no difference\n"));
}

TEST_CASE("a run that diverges has recorded the steps before") {
  const Folder folder;
  folder.write("t.yaml", kSpec);
  const std::string out = folder.file("run");
  const Finished f =
      dptrain({folder.file("t.yaml"), "log.every=1", "epochs=50", "loss=mse_loss",
               "data.target_transforms=[{one_hot: 10}]", "optimizer=sgd: 1e9", "out=" + out});
  CHECK(f.code == 7);
  CHECK_MESSAGE(read_file(out + "/metrics.jsonl").starts_with("{\"step\": 1, "), f.err);
}

}  // namespace
}  // namespace dpt
