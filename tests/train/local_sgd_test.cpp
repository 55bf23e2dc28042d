// Whole runs of local_sgd; tests/oracles/local_sgd_test.cpp compares numbers with PyTorch.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "checkpoint/resumed_run.h"
#include "cli/process.h"
#include "skip.h"
#include "train/memory_estimate.h"

namespace dpt {
namespace {

std::vector<float> floats_of(const Ran& ran) {
  const std::string bytes = data_of(ran.weights);
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
  return out;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i)
    out = std::max(out, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return out;
}

// Equal batches; no batch norm, whose statistics are each replica's own.
const std::string kEven = R"(
data:
  dataset: {synthetic_images: {samples: 48, test_samples: 11, shape: [1, 4, 4]}}
  transforms: [to_tensor]
  batch_size: 12
model: [flatten, {linear: 9}, relu, {dropout: 0.3}, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.1}
epochs: 3
log: {every: 1}
evaluate: true
)";

TEST_CASE("averages of plain SGD after each step are ddp's steps, up to rounding") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  const Words two = {"devices=2", "cores=1"};
  const Ran ddp = run_spec(kEven, with(two, {"parallel=ddp"}));
  const Ran each = run_spec(kEven, with(two, {"parallel={local_sgd: 1}"}));
  const Ran third = run_spec(kEven, with(two, {"parallel={local_sgd: 3}"}));
  REQUIRE_MESSAGE(each.code == 0, each.err);
  // The mean of w - lr g is w - lr mean(g). Twelve steps round weights below 1 to 6e-8 each, in
  // another order.
  CHECK(largest_difference(floats_of(each), floats_of(ddp)) <= 2e-6);
  CHECK(largest_difference(floats_of(third), floats_of(ddp)) > 1e-4);
  const std::vector<double> a = each.step_losses(), b = ddp.step_losses();
  REQUIRE(a.size() == 12);
  REQUIRE(b.size() == 12);
  for (size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) <= 2e-6);
}

TEST_CASE("with fixed shards the bits of local_sgd do not depend on a replica's workers") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  for (const Words& how : std::vector<Words>{
           {"optimizer={sgd: {lr: 0.1, momentum: 0.9}}"},
           {"clip_grad_norm=0.5", "accumulate=2"},
           {"optimizer={adam: 0.01}", "ema=0.9", "precision={bf16: {emulate: true, level: o3}}"},
           {"optimizer={asgd: {lr: 0.1, t0: 2, average: true}}"},
           {"loss={cross_entropy: {weight: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}"}}) {
    CAPTURE(how[0]);
    const Words all = with({"parallel={local_sgd: 2}", "devices=2", "reproducible.shards=8"}, how);
    const Ran one = run_spec(kFiveSteps, with(all, {"cores=1"}));
    REQUIRE_MESSAGE(one.code == 0, one.err);
    same(one, run_spec(kFiveSteps, with(all, {"cores=2"})));
    same(one, run_spec(kFiveSteps, with(all, {"cores=4"})));
  }
}

TEST_CASE("the rest of a run of local_sgd has the bits of the whole") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  const Words mode = {"parallel={local_sgd: 2}", "devices=2", "cores=1"};
  for (const Words& more : std::vector<Words>{
           {"optimizer={sgd: {lr: 0.1, momentum: 0.9}}"},
           {"optimizer={adam: 0.01}", "ema=0.9", "cores=2", "evaluate.every_steps=4"},
           {"optimizer={asgd: {lr: 0.1, lambd: 0.1, t0: 2, average: true}}",
            "schedule={exponential: 0.1}"}}) {
    CAPTURE(more[0]);
    const Words how = with(mode, more);
    const Folder folder;
    Quick disk;
    const Ran whole = run_spec_in({.folder = folder.path(), .disk = &disk}, kFiveSteps,
                                  with(how, {"save={every_steps: 2, every_epochs: 1, keep: 100}"}));
    REQUIRE_MESSAGE(whole.code == 0, whole.err);
    CHECK(steps_in(folder.file("run/checkpoints")) == Steps{15, 14, 12, 10, 8, 6, 5, 4, 2});
    for (const int step : {4, 5, 8}) {
      CAPTURE(step);
      const Folder other;
      same(whole, run_spec_in({other.path(), checkpoint(folder, step)}, kFiveSteps,
                              with(how, {"save=false"})));
    }
    // One copy of weights and states is the whole state: other modes go on from it.
    const Folder other;
    const Ran ddp = run_spec_in({other.path(), checkpoint(folder, 8)}, kFiveSteps,
                                with(more, {"parallel=ddp", "devices=2", "save=false"}));
    CHECK_MESSAGE(ddp.code == 0, ddp.err);
  }
}

TEST_CASE("a stopped run of local_sgd ends at an average, and its rest is the whole run") {
  if (skip_without(kCanFork, "a process that may fork")) return;
  const Folder folder;
  folder.write("t.yaml", kFiveSteps);
  const auto words = [&](const std::string& out, const Words& more) {
    return with({folder.file("t.yaml"), "out=" + folder.file(out), "parallel={local_sgd: 4}",
                 "devices=2", "cores=1", "data.dataset.samples=300", "epochs=12"},
                more);
  };
  REQUIRE(dptrain(words("straight", {"save=false"})).code == 0);
  {
    Process process(words("run", {"save={every_steps: 4}"}));
    REQUIRE(becomes_true(60, [&] {
      const auto there = checkpoints_in(folder.file("run/checkpoints"));
      return !there.empty() && there[0].step > 13;
    }));
    process.send(SIGTERM);
    REQUIRE(process.wait(20) == 143);
  }
  const int64_t stopped = checkpoints_in(folder.file("run/checkpoints"))[0].step;
  CHECK((stopped % 4 == 0 || stopped % 25 == 0));
  const Finished rest = dptrain(words("run", {"--resume", "auto", "save=false"}));
  CHECK_MESSAGE(rest.code == 0, rest.err);
  const auto bits = [&](const std::string& of) {
    return data_of(read_file(folder.file(of + "/model.safetensors")));
  };
  CHECK(bits("run") == bits("straight"));
}

TEST_CASE("settings that need equal replicas in every step are refused by name") {
  const auto refused = [](const std::string& setting, const std::string& message) {
    CAPTURE(setting);
    const Ran ran = run_spec(kEven, {"parallel={local_sgd: 8}", "devices=2", "cores=1", setting});
    CHECK(ran.code == 2);
    CHECK_MESSAGE(ran.err.find(message) != std::string::npos, ran.err);
  };
  refused("sync_batch_norm=true",
          "sync_batch_norm sums over all replicas in every step, but in mode 'local_sgd' replicas "
          "only meet to average their weights: leave it out, or write `parallel: ddp`");
  refused("precision={fp16: {emulate: true}}", "there is no common loss scale; use bf16");
  refused("log.grad_norms=true", "log.grad_norms measures the sum of all replicas' gradients");
  refused("log.noise_scale=true", "log.noise_scale measures the sum of all replicas' gradients");
  refused("evaluate.every_steps=12",
          "evaluate.every_steps is 12, but replicas only have equal weights after every 8 steps "
          "and at the end of an epoch: use a multiple of 8");
  refused("save.every_steps=100", "save.every_steps is 100, but replicas only");
  refused("reproducible.shards=3", "3 shards cannot be split evenly across 2 replicas");
}

TEST_CASE("each replica has weights and states of its own in the memory of a run") {
  const Words how = {"devices=2", "cores=1", "optimizer={adam: 0.01}"};
  const auto local = session_of(kEven, with(how, {"parallel={local_sgd: 8}"}));
  const auto ddp = session_of(kEven, with(how, {"parallel=ddp"}));
  const MemoryEstimate two = estimate_memory(*local), one = estimate_memory(*ddp);
  CHECK(two.weights == 2 * one.weights);
  CHECK(two.states == 2 * one.states);
  CHECK(two.gradients == one.gradients);
}

}  // namespace
}  // namespace dpt
