// How one GPU is fed and told what to do: whatever way its batches come, and however many steps are
// launched at a time, the bits are the same; and the host waits for none of them.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/folder.h"
#include "engine/gpu/fake_gpu.h"
#include "golden_text.h"
#include "paths.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using cuda::FakeApi;

constexpr const char* kTiny = R"(
data:
  dataset: {synthetic_images: {samples: 83, test_samples: 33, shape: [2, 5, 5]}}
  transforms: [to_tensor, {normalize: {mean: [0.3, 0.5], std: [0.2, 0.4]}}]
  batch_size: 8
model:
  - flatten
  - {linear: 7}
  - {dropout: 0.3}
  - {linear: 10}
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
log: {every: 1}
evaluate: {batch_size: 10}
)";

// As little memory as makes the host feed it.
constexpr FakeApi::Settings kSmall{.free_memory = 1};

Ran on_gpu(Told& told, std::vector<std::string> how, const FakeApi::Settings& settings = {},
           const char* yaml = kTiny) {
  how.emplace_back("device=cuda");
  Ran ran = run_spec(yaml, how, fake_gpu(told, settings));
  CHECK(told.leaks == "");
  return ran;
}

int64_t count(const Told& told, std::string_view what) {
  return std::ranges::count_if(told.calls, [&](const std::string& call) {
    return without_compiler(call).find(what) != std::string::npos;
  });
}

TEST_CASE("batches gathered on the GPU and batches made by the host are the same, to the bit") {
  const std::vector<std::vector<std::string>> ways = {
      {},
      {"accumulate=3"},
      {"data.shuffle=false", "evaluate=false"},
      {"data.drop_last=true"},
      {"data.target_transforms=[{one_hot: {num_classes: 10}}]", "loss=mse_loss"},
      {"loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}", "accumulate=2"},
      {"data.transforms=[{random_crop: {size: [6, 4], padding: 1, fill: 9}}, "
       "random_horizontal_flip, to_tensor, {random_erasing: {value: [3, 4]}}, {normalize: {mean: "
       "[0.3, 0.5], std: [0.2, 0.4]}}, {cutout: {length: 2, holes: 2}}]",
       "accumulate=2"},
      {"data.transforms=[{random_crop: {padding: 2}}, random_vertical_flip, to_tensor]",
       "data.sampler=weighted"},
      {"data.target_transforms=[input]", "loss=mse_loss",
       "model=[flatten, {linear: 50}, {reshape: [2, 5, 5]}]"},
      {"data.transforms=[{random_crop: {padding: 2}}, random_horizontal_flip, to_tensor]",
       "data.target_transforms=[input]", "loss=mse_loss",
       "model=[flatten, {linear: 50}, {reshape: [2, 5, 5]}]"},
      {"data.dataset={synthetic_regression: {samples: 50, in_features: 4, out_features: 10}}",
       "data.transforms=[]", "loss=mse_loss", "evaluate=false"},
      {"data.dataset={synthetic_tokens: {samples: 50, vocabulary: 20, length: 6}}",
       "data.transforms=[]", "evaluate=false",
       "model=[{embedding: {num_embeddings: 20, embedding_dim: 4}}, flatten, {linear: 20}]"},
  };
  for (const auto& how : ways) {
    CAPTURE(fmt::format("{}", fmt::join(how, " ")));
    Told gathered, made;
    const Ran a = on_gpu(gathered, how), b = on_gpu(made, how, kSmall);
    same(a, b);
    const auto on_it = [](const Told& told) {
      return count(told, "Gather") + count(told, "DrawFrames");
    };
    CHECK(on_it(gathered) > 0);
    CHECK(count(gathered, "s1 copy") == 0);
    CHECK(count(made, "Gather") + count(made, "Frames") == 0);
    CHECK(count(made, "s1 copy") > 0);
  }
}

TEST_CASE("masks that move with their images are drawn on the GPU as by the host") {
  const Folder folder;
  std::vector<uint8_t> images(10 * 30), classes(images.size());
  std::vector<float> values(images.size());
  for (size_t i = 0; i < images.size(); ++i) {
    images[i] = static_cast<uint8_t>(37 * i);
    classes[i] = static_cast<uint8_t>(i * i % 5 % 3);
    values[i] = static_cast<float>(i);
  }
  folder.write("x.npy", npy("|u1", "(10, 1, 5, 6)", images));
  folder.write("classes.npy", npy("|u1", "(10, 5, 6)", classes));
  folder.write("values.npy", npy("<f4", "(10, 1, 5, 6)", values));
  for (const std::string targets : {"classes", "values"}) {
    CAPTURE(targets);
    const bool one = targets == "values";
    const std::vector<std::string> how = {
        fmt::format("data.dataset={{npy: {{inputs: {0}/x.npy, targets: {0}/{1}.npy, test_inputs: "
                    "{0}/x.npy, test_targets: {0}/{1}.npy}}}}",
                    folder.path(), targets),
        "data.transforms=[{random_crop: {size: [4, 5], padding: 2}}, random_horizontal_flip, "
        "to_tensor, {random_erasing: {p: 0.5}}]",
        "data.batch_size=4",
        fmt::format("model=[{{conv2d: {{out_channels: {}, kernel_size: 1}}}}]", one ? 1 : 3),
        one ? "loss=mse_loss" : "loss=cross_entropy"};
    Told gathered, made;
    const Ran a = on_gpu(gathered, how), b = on_gpu(made, how, kSmall);
    same(a, b);
    CHECK(count(gathered, one ? "DrawFrames<float>" : "DrawFrames<int") > 0);
    CHECK(count(made, "DrawFrames") == 0);
  }
}

TEST_CASE("windows of a text are gathered on the GPU, where it lies once, to the CPU's losses") {
  const Folder folder;
  std::string text(120, ' ');
  for (size_t i = 0; i < text.size(); ++i) text[i] = "abcde"[i * i % 7 % 5];
  folder.write("t.txt", text);
  const std::string model =
      "model=[{embedding: {num_embeddings: 5, embedding_dim: 4}}, {position_embedding: 7}, "
      "{linear: 5}]";
  const auto spec = [&](const std::string& stride) {
    return std::vector<std::string>{
        fmt::format("data.dataset={{text: {{path: {}, sequence_length: 6, test_share: 0.2, stride: "
                    "{}}}}}",
                    folder.file("t.txt"), stride),
        "data.transforms=[]", model, "loss={cross_entropy: {class_dim: -1}}", "epochs=1"};
  };
  for (const std::string stride : {"2", "0", "11"}) {
    CAPTURE(stride);
    Told gathered, made;
    const Ran a = on_gpu(gathered, spec(stride)), b = on_gpu(made, spec(stride), kSmall);
    same(a, b);
    CHECK(count(gathered, "GatherRows<int>") > 0);
    CHECK(count(made, "Gather") == 0);
    std::vector<std::string> on_cpu = spec(stride);
    on_cpu.insert(on_cpu.end(), {"device=cpu", "cores=1"});
    const Ran cpu = run_spec(kTiny, on_cpu);
    REQUIRE_MESSAGE(cpu.code == 0, cpu.err);
    const auto of_gpu = a.step_losses(), of_cpu = cpu.step_losses();
    REQUIRE(of_gpu.size() == of_cpu.size());
    // Sums in other orders are 1e-7 apart, and Adam's first steps divide by what is as small.
    for (size_t i = 0; i < of_cpu.size(); ++i)
      CHECK(std::abs(of_gpu[i] - of_cpu[i]) <= 2e-5 * of_cpu[i]);
    // The accuracy of the 24 characters that are evaluated on, of which 18 are a target.
    const auto line = [](const Ran& ran) { return ran.out.substr(ran.out.find("Test loss")); };
    CHECK(line(a).substr(0, 40) == line(cpu).substr(0, 40));
  }
}

TEST_CASE("metrics of outputs and a validation set are those of a CPU") {
  const std::vector<std::string> how = {
      "evaluate.metrics=[accuracy, top3, f1, confusion_matrix, perplexity]", "data.validation=0.3",
      "evaluate.every_steps=4", "epochs=3"};
  const std::vector<std::string> numbers = {
      "data.dataset={synthetic_regression: {samples: 50, test_samples: 20, in_features: 4, "
      "out_features: 3}}",
      "data.transforms=[]",
      "loss=mse_loss",
      "model=[{linear: 3}]",
      "evaluate.metrics=[mae, r2]",
      "data.validation=0.3"};
  for (const auto& words : {how, numbers}) {
    CAPTURE(words[0]);
    Told gathered, made;
    const Ran a = on_gpu(gathered, words), b = on_gpu(made, words, kSmall);
    same(a, b);
    CHECK(a.out == b.out);
    std::vector<std::string> on_cpu = words;
    on_cpu.insert(on_cpu.end(), {"device=cpu", "cores=1"});
    const Ran cpu = run_spec(kTiny, on_cpu);
    REQUIRE_MESSAGE(cpu.code == 0, cpu.err);
    // Sums in other orders differ in the last bits, and Adam's steps enlarge that: by far less than
    // the two digits that are compared here.
    const auto line = [](const Ran& ran) { return ran.out.substr(ran.out.find("Test loss")); };
    CHECK(line(a).substr(0, 15) == line(cpu).substr(0, 15));
  }
}

TEST_CASE("images of floats are drawn on the GPU, too") {
  constexpr int64_t kImages = 20, kPixels = 2 * 5 * 5;
  std::vector<float> images(kImages * kPixels);
  for (size_t i = 0; i < images.size(); ++i) images[i] = std::sin(static_cast<float>(i));
  std::vector<int32_t> classes(kImages);
  for (size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<int32_t>(i % 10);
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(20, 2, 5, 5)", images));
  folder.write("y.npy", npy("<i4", "(20,)", classes));
  const std::vector<std::string> how = {
      fmt::format("data.dataset={{npy: {{inputs: {}, targets: {}}}}}", folder.file("x.npy"),
                  folder.file("y.npy")),
      "data.transforms=[{random_crop: {padding: 2}}, {cutout: {length: 2, value: 7}}]",
      "evaluate=false"};
  Told drawn, made;
  same(on_gpu(drawn, how), on_gpu(made, how, kSmall));
  CHECK(count(drawn, "DrawFrames<float>") > 0);
  CHECK(count(made, "DrawFrames") == 0);
}

TEST_CASE("many steps as a graph, one, or each call by itself: the same bits") {
  for (const auto& settings : {FakeApi::Settings{}, kSmall})
    for (const auto& how : std::vector<std::vector<std::string>>{
             {},
             {"accumulate=3"},
             {"precision={fp16: {lists: cuda, emulate: true, init_scale: 67108864}}"},
             {"optimizer={sgd: {lr: 0.1, momentum: 0.9}}", "schedule={one_cycle: {max_lr: 0.2}}"},
             {"schedule={reduce_on_plateau: {patience: 0}}", "steps=15"}}) {
      CAPTURE(fmt::format("{}", fmt::join(how, " ")));
      std::vector<std::string> without = how;
      without.emplace_back("graphs=false");
      Told captured, told;
      same(on_gpu(captured, how, settings), on_gpu(told, without, settings));
      CHECK(count(told, " graph of ") == 0);
      // Three batches of ten test samples and one with the rest, twice. The first of either size is
      // no graph. Of those that lie on the GPU two are a launch, and what is recorded is one, two
      // and the rest; else one and the rest in the first place, and one in the second.
      const bool gathers = settings.free_memory > 1;
      CHECK(count(told, "NextTestBatch") == 8);
      CHECK(count(captured, "NextTestBatch") == (gathers ? 6 : 5));
      // Ten steps with full batches and one with the rest, in each of two epochs.
      const int64_t steps = count(captured, " graph of ") - (gathers ? 4 : 6);
      CHECK(steps < (gathers ? 10 : 23));
      CHECK(steps >= (gathers ? 3 : 13));
    }
}

TEST_CASE("the scale of the loss shrinks and grows on the GPU as on the CPU") {
  const std::vector<std::string> how = {
      "precision={fp16: {lists: cuda, emulate: true, init_scale: 4194304, growth_interval: 3}}",
      "evaluate=false"};
  std::vector<std::string> on_cpu = how;
  on_cpu.insert(on_cpu.end(), {"device=cpu", "cores=1"});
  Told told;
  const Ran gpu = on_gpu(told, how), cpu = run_spec(kTiny, on_cpu);
  REQUIRE_MESSAGE(gpu.code == 0, gpu.err);
  REQUIRE_MESSAGE(cpu.code == 0, cpu.err);
  const auto scales = [](const std::string& metrics) {
    std::vector<double> out;
    const std::string_view key = "\"loss_scale\": ";
    for (size_t at = 0; (at = metrics.find(key, at)) != std::string::npos;) {
      at += key.size();
      out.push_back(std::strtod(metrics.c_str() + at, nullptr));
    }
    return out;
  };
  const auto seen = scales(gpu.metrics);
  CHECK(seen == scales(cpu.metrics));
  REQUIRE(seen.size() >= 22);
  // It went down, and up.
  CHECK(std::ranges::adjacent_find(seen, std::ranges::greater{}) != seen.end());
  CHECK(std::ranges::adjacent_find(seen, std::ranges::less{}) != seen.end());
}

TEST_CASE("a missing event between copies and steps is found") {
  const std::vector<std::string> how = {"epochs=1", "evaluate=false"};
  FakeApi::Settings deaf = kSmall;
  deaf.busy = true;  // else the host may come to know that a place is free
  Told told;
  REQUIRE(on_gpu(told, how, deaf).code == 0);
  REQUIRE(told.waits == 11 + 9);  // of steps for their copies; of copies for a place
  for (int64_t n = 0; n < told.waits; ++n) {
    deaf.deaf_wait = n;
    Told seeded;
    const Ran ran = on_gpu(seeded, how, deaf);
    CAPTURE(n);
    CHECK(ran.code != 0);
    CHECK_MESSAGE(ran.err.find("no event stands between them") != std::string::npos, ran.err);
  }
}

TEST_CASE("Ctrl-C ends a run after the steps that the GPU was told of, with their weights") {
  const std::vector<std::string> how = {"evaluate=false", "epochs=200"};
  Told told;
  const Ran ran = on_gpu(told, how, {.interrupt_call = 900});
  CHECK_MESSAGE(ran.code == 130, ran.err);
  const size_t steps = ran.step_losses().size();
  CHECK(steps > 11);
  CHECK(steps < 2200);
  Told whole;
  const Ran same_steps =
      on_gpu(whole, {"evaluate=false", "epochs=null", fmt::format("steps={}", steps)});
  REQUIRE_MESSAGE(same_steps.code == 0, same_steps.err);
  CHECK(ran.step_losses() == same_steps.step_losses());
  CHECK(data_of(ran.weights) == data_of(same_steps.weights));
}

TEST_CASE("nothing is updated after a loss that is no number, though steps are under way") {
  // Nine steps an epoch and more: the first that diverges is not the last of its launch.
  const std::vector<std::string> how = {"optimizer={sgd: 1e20}", "evaluate=false"};
  std::vector<std::string> on_cpu = how;
  on_cpu.insert(on_cpu.end(), {"device=cpu", "cores=1"});
  for (const auto& settings : {FakeApi::Settings{}, kSmall}) {
    Told told;
    const Ran gpu = on_gpu(told, how, settings), cpu = run_spec(kTiny, on_cpu);
    CHECK(gpu.code == static_cast<int>(Fault::diverged));
    const auto message = [](const std::string& err) { return err.substr(err.find("dptrain: ")); };
    CHECK(message(gpu.err) == message(cpu.err));
  }
}

TEST_CASE("a sample that is not finite is named as on a CPU") {
  std::vector<float> images(20 * 50, 0.5F);
  images[13 * 50 + 7] = std::numeric_limits<float>::quiet_NaN();
  const Folder folder;
  folder.write("x.npy", npy("<f4", "(20, 2, 5, 5)", images));
  folder.write("y.npy", npy("<i4", "(20,)", std::vector<int32_t>(20, 3)));
  Told told;
  const Ran ran = on_gpu(told, {fmt::format("data.dataset={{npy: {{inputs: {}, targets: {}}}}}",
                                            folder.file("x.npy"), folder.file("y.npy")),
                                "data.shuffle=false", "data.transforms=[]", "evaluate=false"});
  CHECK(ran.code == static_cast<int>(Fault::diverged));
  CHECK_MESSAGE(
      ran.err.find("at epoch 1, step 2: sample 13 of the training set") != std::string::npos,
      ran.err);
}

// The call number `n`, from 0, of those that have this in them.
std::vector<std::string>::const_iterator find(const std::vector<std::string>& calls,
                                              std::string_view what, int n) {
  auto at = calls.begin();
  const auto has = [&](const std::string& call) { return call.find(what) != std::string::npos; };
  while ((at = std::find_if(at, calls.end(), has)) != calls.end() && n-- > 0) ++at;
  return at;
}

void golden(const std::string& name, const std::vector<std::string>& calls) {
  check_golden(without_compiler(fmt::format("{}\n", fmt::join(calls, "\n"))),
               "engine/gpu/golden/" + name);
}

TEST_CASE("what a step records, and what an epoch is told: the host waits for its end alone") {
  Told told;
  REQUIRE(on_gpu(told, {"evaluate=false", "epochs=3"}).code == 0);
  // Uploads, and the first step, which is no graph.
  const std::vector<std::string>& calls = told.calls;
  golden("step.txt", {calls.begin(), find(calls, "BeginBatch", 1)});
  // The third epoch, in which nothing is captured any more, and the end.
  golden("epoch.txt", {find(calls, "host waits", 1), calls.end()});
  Told large;
  REQUIRE(on_gpu(large, {"evaluate=false", "epochs=1"}, kSmall).code == 0);
  // Three steps whose batches the host makes.
  const std::vector<std::string>& staged = large.calls;
  golden("staged.txt", {find(staged, " graph of ", 1), find(staged, " graph of ", 4)});
}

TEST_CASE("a GPU trains shipped specs to the CPU's losses") {
  const auto spec = [](const std::string& name) {
    std::ifstream in(source_file("configs/") + name + ".yaml");
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string images =
      "data.dataset={synthetic_images: {samples: 64, test_samples: 32, shape: [1, 28, 28]}}";
  const std::vector<std::pair<std::string, std::vector<std::string>>> runs = {
      {"fmnist_single", {images, "data.batch_size=20"}},
      {"lenet", {images, "data.batch_size=16", "steps=2"}},
      {"embedding_dp", {"parallel=single", "devices=1"}},
  };
  for (const auto& run : runs) {
    const std::string& name = run.first;
    CAPTURE(name);
    std::vector<std::string> how = run.second;
    how.insert(how.end(), {"log.every=1", "evaluate=false"});
    if (name != "lenet") how.emplace_back("steps=6");
    std::vector<std::string> on_cpu = how;
    on_cpu.insert(on_cpu.end(), {"device=cpu", "cores=1"});
    Told told;
    const Ran gpu = on_gpu(told, how, {}, spec(name).c_str()), cpu = run_spec(spec(name), on_cpu);
    REQUIRE_MESSAGE(gpu.code == 0, gpu.err);
    REQUIRE_MESSAGE(cpu.code == 0, cpu.err);
    const auto a = gpu.step_losses(), b = cpu.step_losses();
    REQUIRE(a.size() == b.size());
    CHECK(a.size() >= 2);
    // Sums in other orders are 1e-7 apart, and Adam's first steps divide by what is as small.
    for (size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) <= 2e-5 * std::abs(b[i]));
  }
}

}  // namespace
}  // namespace dpt
