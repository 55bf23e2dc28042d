// Settings at their limits, and pairs of settings that seldom stand together.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "train/run_spec.h"

namespace dpt {
namespace {

const std::string kSpec = R"(
data:
  dataset: {random: {samples: 20, in_features: 4, out_features: 2}}
  batch_size: 8
model: [{linear: 6}, {dropout: 0.5}, {linear: 2}]
loss: mse_loss
optimizer: {sgd: 0.1}
epochs: 2
cores: 1
log: {every: 1}
)";

TEST_CASE("as many shards as a spec may ask for") {
  const Ran one = run_spec(kSpec, {"reproducible=4096"});
  CHECK(one.code == 0);
  CHECK(one.step_losses().size() == 6);
  const Ran two = run_spec(kSpec, {"reproducible=4096", "parallel=ddp", "devices=2"});
  CHECK(two.step_losses() == one.step_losses());
}

TEST_CASE("more micro-batches than samples are as many as there are samples") {
  const Ran eight = run_spec(kSpec, {"accumulate=8"});
  CHECK(eight.code == 0);
  const Ran many = run_spec(kSpec, {"accumulate=65536"});
  CHECK(many.step_losses() == eight.step_losses());
}

TEST_CASE("the same weights are the same file, whatever the spec is called") {
  const Ran a = run_spec(kSpec, {"name=a"}), b = run_spec(kSpec, {"name=b", "log.every=2"});
  CHECK(!a.weights.empty());
  CHECK(a.weights == b.weights);
}

TEST_CASE("sizes whose product is no number are refused") {
  for (const char* size : {"accumulate=9000000000000000000", "data.batch_size=9000000000000000000",
                           "evaluate={batch_size: 9000000000000000000}"})
    CHECK_MESSAGE(run_spec(kSpec, {size}).code == 2, size);
}

// The losses of the PyTorch program that `dptrain export` writes of this spec (torch 2.13): its
TEST_CASE("orders of ddp come from data.sampler_seed, those of other modes from seed") {
  const auto losses = [](const std::string& mode, const std::string& more) {
    const std::string spec =
        "data: {dataset: {synthetic_images: {samples: 40, shape: [1, 4, 4]}}, transforms: "
        "[to_tensor], batch_size: 8}\nmodel: [flatten, {linear: 10}]\nloss: cross_entropy\n"
        "optimizer: {sgd: 0.1}\nepochs: 1\ncores: 1\nparallel: " +
        mode;
    return run_spec(spec, {more}).losses();
  };
  const std::string sampler = "data.sampler_seed=5", none = "data.sampler_seed=0";
  CHECK(losses("ddp\ndevices: 2\n", sampler) != losses("ddp\ndevices: 2\n", none));
  CHECK(losses("single\n", sampler) == losses("single\n", none));
  const std::string shards = "ddp\ndevices: 2\nreproducible: 2\n";
  CHECK(losses(shards, sampler) == losses(shards, none));
}

// DataLoader draws the seed of its workers from the generator of the masks, whatever its sampler.
TEST_CASE("torch's masks, in the order of reproducible runs") {
  const Ran ran = run_spec(kSpec, {"random=torch", "reproducible=2"});
  const std::vector<double> torch = {1.52922, 1.141228, 0.954848, 0.5420877, 1.311897, 1.309273};
  const std::vector<double> losses = ran.step_losses();
  REQUIRE(losses.size() == torch.size());
  for (size_t i = 0; i < torch.size(); ++i)  // other masks differ in the second digit
    CHECK(losses[i] == doctest::Approx(torch[i]).epsilon(1e-5));
}

TEST_CASE("torch's masks are drawn when nobody uses those of the micro-batch before any more") {
  std::vector<std::string> words = {
      "data.dataset.random={samples: 256, in_features: 4, out_features: 2}",
      "data.batch_size=64",
      "model=[{linear: 300}, {dropout: 0.5}, {linear: 300}, {dropout: 0.5}, {linear: 2}]",
      "random=torch",
      "reproducible=2",
      "accumulate=4",
      "epochs=10"};
  const Ran one = run_spec(kSpec, words);
  words.push_back("cores=2");
  same(run_spec(kSpec, words), one);
}

TEST_CASE("torch's masks in mixed precision") {
  const std::vector<double> full = run_spec(kSpec, {"random=torch"}).step_losses();
  for (const char* precision :
       {"precision={bf16: {emulate: true}}", "precision={bf16: {emulate: true, level: o3}}",
        "precision={fp16: {emulate: true}}"}) {
    CAPTURE(precision);
    const std::vector<double> losses = run_spec(kSpec, {"random=torch", precision}).step_losses();
    REQUIRE(losses.size() == full.size());
    for (size_t i = 0; i < full.size(); ++i)  // bf16 has 8 bits; other masks differ by a tenth
      CHECK(losses[i] == doctest::Approx(full[i]).epsilon(0.02));
  }
}

TEST_CASE("batch norm of a single sample is refused before the first step") {
  // 20 samples in batches of 19 leave one; in batches of 8 for 8 replicas each has one.
  const std::string norm = "model=[{linear: 6}, batch_norm1d, {linear: 2}]";
  const Ran last = run_spec(kSpec, {norm, "data.batch_size=19"});
  CHECK(last.code == 2);
  CHECK(last.err.find(
            "batch 2 of 2 leaves a replica with a single sample, which has no variance for "
            "batch norm; change batch_size, or set `drop_last: true`") != std::string::npos);
  CHECK(run_spec(kSpec, {norm, "data.batch_size=19", "data.drop_last=true"}).code == 0);
  const std::vector<std::string> eight = {norm, "parallel=dp", "devices=8", "steps=1"};
  CHECK(run_spec(kSpec, eight).err.find("; change batch_size\n") != std::string::npos);
  std::vector<std::string> all = eight;
  all.emplace_back("sync_batch_norm=true");
  CHECK(run_spec(kSpec, all).code == 0);
}

TEST_CASE("batch norm without running statistics refuses to evaluate a single sample") {
  const std::string norm =
      "model=[{linear: 6}, {batch_norm1d: {track_running_stats: false}}, {linear: 2}]";
  const std::vector<std::string> words = {
      norm, "data.dataset.random={samples: 20, test_samples: 9, out_features: 2}"};
  const auto run = [&](const std::string& evaluate, const std::string& model = "") {
    std::vector<std::string> how = words;
    if (!model.empty()) how[0] = model;
    how.push_back("evaluate=" + evaluate);
    return run_spec(kSpec, how);
  };
  for (const char* of_one : {"{batch_size: 4}", "{batch_size: 1}"}) {
    const Ran ran = run(of_one);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(
        ran.err.find("of the test set leaves a replica with a single sample") != std::string::npos,
        ran.err);
  }
  CHECK(run("{batch_size: 5}").code == 0);
  CHECK(run("{batch_size: 4}", "model=[{linear: 6}, batch_norm1d, {linear: 2}]").code == 0);
  // A channel of a sample that has several values has a variance.
  CHECK(run_spec(kSpec, {"data.dataset={synthetic_images: {samples: 20, test_samples: 9, shape: "
                         "[1, 2, 2]}}",
                         "data.transforms=[to_tensor]", "loss=cross_entropy",
                         "model=[{batch_norm2d: {track_running_stats: false}}, flatten, "
                         "{linear: 10}]",
                         "evaluate={batch_size: 4}"})
            .code == 0);
}

}  // namespace
}  // namespace dpt
