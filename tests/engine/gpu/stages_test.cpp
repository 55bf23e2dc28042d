// Stages on several fake GPUs: the bits are those of one GPU that computes the chunks one by one.
#include "engine/gpu/stages.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "engine/gpu/fake_fleet.h"
#include "engine/gpu/gpu_specs.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using cuda::FakeApi;
using Words = std::vector<std::string>;

std::string pipeline(const std::string& keys) {
  return fmt::format("parallel={{pipeline: {{{}}}}}", keys);
}

Ran on_gpus(const char* yaml, Words words,
            const std::function<void(FakeApi::Settings&)>& settings = {}, bool clean = true) {
  Fleet gpus;
  words.emplace_back("device=cuda");
  Ran out = run_spec(yaml, words, gpus.opener(settings));
  if (clean) CHECK_MESSAGE(gpus.leaks() == "", gpus.leaks());
  return out;
}

TEST_CASE("a pipeline of GPUs has the bits of one GPU, by every schedule") {
  const Ran one = on_gpus(kMlp, {"accumulate=4"});
  agree(one, run_spec(kMlp, {"accumulate=4", "cores=1"}), kSameNumbers);
  for (const char* keys :
       {"stages: 2, chunks: 4", "stages: 2, chunks: 4, schedule: gpipe",
        "stages: 2, chunks: 4, schedule: interleaved_1f1b", "stages: 3, chunks: 4",
        "stages: 3, chunks: 4, balance: memory", "stages: 2, chunks: 4, checkpoint: always",
        "stages: 2, chunks: 4, checkpoint: except_last"}) {
    CAPTURE(keys);
    same(one, on_gpus(kMlp, {pipeline(keys)}));
    if (kSanitized) break;
  }
  // A last batch with fewer samples than chunks.
  same(on_gpus(kMlp, {"accumulate=3", "data.limit=66"}),
       on_gpus(kMlp, {pipeline("stages: 2, chunks: 3"), "data.limit=66"}));
  Words one_gpu = kGroups, stages = kGroups;
  for (Words* words : {&one_gpu, &stages})
    words->emplace_back("optimizer={adam_w: {weight_decay: 0.1}}");
  one_gpu.emplace_back("accumulate=2");
  stages.push_back(pipeline("stages: 2, chunks: 2"));
  same(on_gpus(kMlp, one_gpu), on_gpus(kMlp, stages));
  // On one GPU, for study.
  same(one, on_gpus(kMlp, {pipeline("stages: 2, chunks: 4"), "devices=[cuda:0, cuda:0]"}));
}

TEST_CASE("stages without replicas share states with nobody, and round gradients all the same" *
          doctest::skip(!kCanFork)) {
  std::string placed = kMlp;
  const std::string last = "{linear: 10}";
  placed.replace(placed.find(last), last.size(), "{linear: 10, device: 1}");
  const auto trained = [&](const std::string& mode) {
    return on_gpus(placed.c_str(), {"devices=2", "parallel=" + mode});
  };
  const Ran whole = trained("ddp"), halves = trained("{ddp: {compress: fp16}}");
  CHECK_MESSAGE(whole.code == 0, whole.err);
  same(whole, trained("{ddp: {shard: optimizer}}"));
  CHECK(halves.weights != whole.weights);
}

TEST_CASE("a pipeline of GPUs: batch norm, batches made by the host, losses that targets divide") {
  const Words fewer = {kSanitized ? "epochs=1" : "epochs=2"};
  Words whole = fewer, cut = fewer;
  whole.emplace_back("accumulate=2");
  cut.emplace_back(pipeline("stages: 3, chunks: 2"));
  same(on_gpus(kImages, whole), on_gpus(kImages, cut));
  const Words weighted = {"loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"};
  whole = cut = weighted;
  whole.emplace_back("accumulate=2");
  cut.emplace_back(pipeline("stages: 2, chunks: 2"));
  same(on_gpus(kMlp, whole), on_gpus(kMlp, cut));
}

TEST_CASE("deferred batch norm on GPUs: running statistics of whole batches, as on CPUs") {
  const auto ran = [](const std::string& keys, Words more = {}) {
    const Words words = {pipeline("chunks: 3, " + keys), "data.limit=35"};
    more.insert(more.begin(), words.begin(), words.end());
    Words cpu = more;
    cpu.insert(cpu.end(), {"cores=1", "device=cpu"});
    const Ran gpu = on_gpus(kImages, more);
    // With losses of the test set, which the running statistics make.
    agree(gpu, run_spec(kImages, cpu), kSameNumbers);
    return gpu;
  };
  // Three chunks of a batch of 16, in the end one of 3 samples.
  const Ran deferred = ran("stages: 2, deferred_batch_norm: true");
  CHECK(deferred.losses() !=
        on_gpus(kImages, {pipeline("stages: 2, chunks: 3"), "data.limit=35"}).losses());
  if (kSanitized) return;
  same(deferred, ran("stages: 3, deferred_batch_norm: true, checkpoint: always"));
  // Captured, with pieces of two batches.
  ran("stages: 1, deferred_batch_norm: true", {"accumulate=2"});
}

TEST_CASE("a pipeline of GPUs clips by the norm of all stages, and scales its loss") {
  // Norms are sums in double over other pieces.
  for (const char* clip : {"clip_grad_norm=0.5", "clip_grad_norm={max_norm: 0.05, norm_type: inf}"})
    agree(on_gpus(kMlp, {pipeline("stages: 2, chunks: 2"), clip}),
          on_gpus(kMlp, {"accumulate=2", clip}), 1e-9);
  const char* const fp16 =
      "precision={fp16: {lists: cuda, emulate: true, init_scale: 67108864, growth_interval: 3}}";
  same(on_gpus(kMlp, {pipeline("stages: 3, chunks: 2"), fp16}),
       on_gpus(kMlp, {"accumulate=2", fp16}));
}

TEST_CASE("layers that are placed on GPUs have the bits of one GPU") {
  constexpr const char* kPlaced = R"(
data: {dataset: {synthetic_images: {samples: 83, test_samples: 57, shape: [1, 6, 6]}}, transforms: [to_tensor], batch_size: 32}
model: [flatten, {linear: 19, name: lin1}, gelu, {linear: 13, name: lin2}, {residual: {body: [{linear: 13}, tanh]}, name: rest}, {linear: 10, name: last}]
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
log: {every: 1}
evaluate: {batch_size: 10}
)";
  const Ran one = on_gpus(kPlaced, {});
  same(one, on_gpus(kPlaced, {"model.lin2.device=1"}));
  // Back to the first one, and further.
  same(one,
       on_gpus(kPlaced, {"model.lin2.device=1", "model.rest.device=0", "model.last.device=2"}));
}

TEST_CASE("a GPU whose layers have no parameters, or no running statistics, reads none back") {
  constexpr const char* kSpec = R"(
data: {dataset: {synthetic_images: {samples: 40, test_samples: 24, shape: [1, 4, 4], classes: 5}}, batch_size: 8}
model: [flatten, {linear: 6, name: wide}, batch_norm1d, tanh, {linear: 5, name: last}]
loss: cross_entropy
optimizer: {sgd: 0.1}
steps: 4
log: {every: 1}
evaluate: true
)";
  const Ran one = on_gpus(kSpec, {});
  same(one, on_gpus(kSpec, {"model.wide.device=1"}));  // flatten alone is on the first
  same(one, on_gpus(kSpec, {"model.last.device=1"}));
  const Words replicas = {"devices=4", "parallel=ddp", "model.last.device=1"};
  same(on_gpus(kSpec, {"devices=2", "parallel=ddp"}), on_gpus(kSpec, replicas));
  same(on_gpus(kSpec, {"model.wide.freeze=true"}),
       on_gpus(kSpec, {"model.wide.freeze=true", "model.last.device=1"}));
}

// Of the first so many waits, from number `first` on, of the stream of that GPU.
void each_wait_matters(int gpu, int64_t first, int64_t count, Words how) {
  how.insert(how.end(), {"epochs=1", "clip_grad_norm=0.5"});
  for (int64_t n = first; n < first + count; ++n) {
    CAPTURE(n);
    const Ran ran = on_gpus(
        kMlp, how, [&](FakeApi::Settings& s) { s.deaf_wait = s.index == gpu ? n : -1; }, false);
    CHECK(ran.code == static_cast<int>(Fault::failed));
    CHECK_MESSAGE(ran.err.find("of another GPU") != std::string::npos, ran.err);
  }
}

TEST_CASE("an event that is left out between GPUs is found") {
  // In each step the first GPU waits for two gradients and the decision, the second one for two
  // inputs and the norm partials. Behind the last step the host's waiting would stand between them,
  // too.
  for (const char* schedule : {"1f1b", "gpipe"})
    for (const int gpu : {0, 1})
      each_wait_matters(gpu, 0, 6,
                        {pipeline(fmt::format("stages: 2, chunks: 2, schedule: {}", schedule)),
                         "steps=3", "evaluate=false"});
  // Of six batches of an evaluation the second one waits for each, the first one for room, of which
  // it has two. So the first host may have waited for its GPU's last two batches before the second
  // host gets to them, and a wait that is left out there does no harm.
  const Words evaluates = {pipeline("stages: 2, chunks: 2"), "steps=1"};
  each_wait_matters(0, 3, 4, evaluates);
  each_wait_matters(1, 3, 4, evaluates);
}

TEST_CASE("a call that fails on one GPU of a pipeline ends the run with its error") {
  int failures = 0;
  for (int64_t n = 0;; n += 61) {
    CAPTURE(n);
    const Ran failed = on_gpus(kMlp, {pipeline("stages: 2, chunks: 2"), "epochs=1", "steps=2"},
                               [n](FakeApi::Settings& s) { s.fail_call = s.index == 1 ? n : -1; });
    if (failed.code == 0) break;  // there are fewer calls
    ++failures;
    CHECK(failed.err.find(fmt::format("call {} of the fake GPU", n)) != std::string::npos);
    CHECK(failed.weights.empty());
  }
  CHECK(failures > 5);
}

TEST_CASE("a loss that is no number is found on the GPU where it arose") {
  const Ran ran = on_gpus(kMlp, {pipeline("stages: 3, chunks: 2"), "optimizer={sgd: 1e30}"});
  const Ran one = on_gpus(kMlp, {"accumulate=2", "optimizer={sgd: 1e30}"});
  CHECK(ran.code == static_cast<int>(Fault::diverged));
  const auto told = [](const std::string& err) { return err.substr(err.find("dptrain: ")); };
  CHECK(told(ran.err) == told(one.err));
}

TEST_CASE("a stage that holds only dropout, on GPUs") {
  const char* const spec =
      "data: {dataset: {random: {samples: 8, in_features: 4, out_features: 2}}, batch_size: 4}\n"
      "model: [{dropout: 0.5}, {linear: 8}, {dropout: 0.5}, {linear: 2}]\n"
      "loss: mse_loss\noptimizer: {sgd: 0.1}\nevaluate: true\nepochs: 2\nlog: {every: 1}\n";
  const Ran one = on_gpus(spec, {"accumulate=2"});
  same(one, on_gpus(spec, {pipeline("stages: 4, chunks: 2")}));
  same(on_gpus(spec, {}), on_gpus(spec, {"model[1].device=1", "model[2].device=0"}));
}

}  // namespace
}  // namespace dpt
