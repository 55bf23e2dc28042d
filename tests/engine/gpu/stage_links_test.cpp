// Stages on several fake GPUs, each a process: the bits are those of stages that are threads.
#include "engine/gpu/stage_links.h"

#include <functional>
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

Ran on_gpus(const std::string& yaml, const std::string& keys, const Words& more = {},
            const std::function<void(FakeApi::Settings&)>& settings = {}, bool clean = true,
            double stuck_gpu_s = 600) {
  Fleet gpus;
  Words words = {fmt::format("parallel={{pipeline: {{{}}}}}", keys), "device=cuda"};
  words.insert(words.end(), more.begin(), more.end());
  Ran out = run_spec(yaml, words, gpus.opener(settings), stuck_gpu_s);
  if (clean) CHECK_MESSAGE(gpus.leaks() == "", gpus.leaks());
  return out;
}

void alike(const std::string& yaml, const std::string& keys, const Words& more = {}) {
  CAPTURE(keys);
  same(on_gpus(yaml, keys, more), on_gpus(yaml, keys + ", processes: true", more));
}

TEST_CASE("stages on GPUs that are processes have the bits of threads, by every schedule" *
          doctest::skip(!kCanFork)) {
  alike(kMlp, "stages: 3, chunks: 4", {"epochs=1"});
  if (kSanitized) return;
  alike(kMlp, "stages: 2, chunks: 4");
  alike(kMlp, "stages: 2, chunks: 4, schedule: gpipe");
  alike(kMlp, "stages: 2, chunks: 4, schedule: interleaved_1f1b");
  alike(kMlp, "stages: 3, chunks: 4, checkpoint: except_last", {"data.limit=66"});
  alike(kMlp, "stages: 2, chunks: 2",
        {"loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"});
  // Batches that the host makes, of which a stage in the middle has none.
  const auto small = [](FakeApi::Settings& settings) { settings.free_memory = 0; };
  same(on_gpus(kMlp, "stages: 3, chunks: 2", {}, small),
       on_gpus(kMlp, "stages: 3, chunks: 2, processes: true", {}, small));
  alike(kImages, "stages: 3, chunks: 3, deferred_batch_norm: true",
        {"data.limit=35", "epochs=1", "clip_grad_norm=0.5"});
}

// A run whose steps are captured or not, which its GPUs were told so many graphs of.
Ran launched(const std::string& yaml, const std::string& keys, Words more, bool graphs, int count,
             const std::function<void(FakeApi::Settings&)>& settings) {
  Fleet gpus;
  more.insert(more.end(), {fmt::format("parallel={{pipeline: {{{}, processes: true}}}}", keys),
                           "device=cuda", "evaluate=false"});
  if (!graphs) more.emplace_back("graphs=false");
  Ran out = run_spec(yaml, more, gpus.opener(settings));
  CHECK_MESSAGE(gpus.leaks() == "", gpus.leaks());
  for (int gpu = 0; gpu < gpus.opened(); ++gpu) CHECK(gpus.graphs(gpu) == (graphs ? count : 0));
  return out;
}

TEST_CASE("steps of stages that are processes are captured, but for the first" *
          doctest::skip(!kCanFork)) {
  const auto captured = [](const std::string& keys, int count, const Words& more = {},
                           const std::function<void(FakeApi::Settings&)>& settings = {}) {
    CAPTURE(keys);
    same(launched(kMlp, keys, more, true, count, settings),
         launched(kMlp, keys, more, false, 0, settings));
  };
  // Three steps an epoch, of which two are alike; the first of either shape is not captured.
  captured("stages: 3, chunks: 4, schedule: gpipe", 5, {"clip_grad_norm=0.5"});
  captured("stages: 2, chunks: 2, data_parallel: 2, bucket_cap_mb: 0.001, shard: optimizer", 5,
           {"data.limit=65", "clip_grad_norm=0.5",
            "loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"});
  captured("stages: 2, chunks: 2, backend: gloo", 0);
  // More steps than may be under way, one by one where hosts make batches: also those of a stage in
  // the middle, which has none.
  captured("stages: 3, chunks: 2", 31, {"data.batch_size=8"},
           [](FakeApi::Settings& s) { s.free_memory = 0; });
}

TEST_CASE("stages that are processes copy by way of the host's memory, too, and then share a GPU" *
          doctest::skip(!kCanFork)) {
  const std::string keys = "stages: 2, chunks: 2", apart = keys + ", processes: true";
  const Words few = {"epochs=1", "clip_grad_norm=0.5"};
  Words shared = few;
  shared.emplace_back("devices=[cuda:0, cuda:0]");
  const Ran threads = on_gpus(kMlp, keys, few);
  same(threads, on_gpus(kMlp, apart, shared));
  if (!kSanitized) same(threads, on_gpus(kMlp, apart + ", backend: gloo", few));
}

TEST_CASE("replicas of pipelines whose stages are processes have the bits of those of threads" *
          doctest::skip(!kCanFork)) {
  alike(kMlp, "stages: 2, chunks: 2, data_parallel: 2, bucket_cap_mb: 0.001", {"epochs=1"});
  if (kSanitized) return;
  alike(kImages, "stages: 2, chunks: 2, data_parallel: 2",
        {"sync_batch_norm=true", "data.limit=35"});
  alike(kMlp, "stages: 2, chunks: 2, data_parallel: 2, backend: gloo, shard: optimizer");
}

TEST_CASE("an event that is left out around copies between processes is found" *
          doctest::skip(!kCanFork)) {
  const std::string keys = "stages: 2, chunks: 2, processes: true";
  const Words few = {"steps=3", "evaluate=false", "clip_grad_norm=0.5"};
  const Ran right = on_gpus(kMlp, keys, few);
  for (const int gpu : {0, 1}) {
    CAPTURE(gpu);
    int64_t found = 0;
    // Of steps that are captured, behind one that is not.
    for (int64_t n = 12; n < 24; n += kSanitized ? 5 : 1) {
      CAPTURE(n);
      const Ran ran = on_gpus(
          kMlp, keys, few, [=](FakeApi::Settings& s) { s.deaf_wait = s.index == gpu ? n : -1; },
          false);
      if (ran.code == 0) {  // another one stands behind it
        same(right, ran);
        continue;
      }
      CHECK_MESSAGE(ran.err.find(": fake GPU: ") != std::string::npos, ran.err);
      ++found;
    }
    CHECK(found > (kSanitized ? 0 : 5));
  }
}

TEST_CASE("a stage that fails ends those of other processes with one message" *
          doctest::skip(!kCanFork)) {
  for (const char* backend : {"nccl", "gloo"}) {
    int failures = 0;
    for (int64_t n = 30;; n += kSanitized ? 230 : 41) {
      CAPTURE(n);
      const Ran failed =
          on_gpus(kMlp, fmt::format("stages: 2, chunks: 2, processes: true, backend: {}", backend),
                  {"steps=2", "evaluate=false"},
                  [n](FakeApi::Settings& s) { s.fail_call = s.index == 1 ? n : -1; });
      if (failed.code == 0) break;  // there are fewer calls
      ++failures;
      CHECK_MESSAGE(failed.err.find(fmt::format("call {} of the fake GPU", n)) != std::string::npos,
                    failed.err);
      CHECK(failed.err.find("dptrain: ") == failed.err.rfind("dptrain: "));
      CHECK(failed.weights.empty());
    }
    CHECK(failures > (kSanitized ? 0 : 4));
    if (kSanitized) break;
  }
}

TEST_CASE("a stage that does not come is named with its rank" *
          doctest::skip(!kCanFork || kSanitized)) {
  for (const char* backend : {"nccl", "gloo"}) {
    const Ran ran = on_gpus(
        kMlp,
        fmt::format("stages: 2, chunks: 2, processes: true, timeout: 1, backend: {}", backend),
        {"evaluate=false"}, [](FakeApi::Settings& s) { s.stall_call = s.index == 1 ? 250 : -1; },
        false, 1);
    CHECK(ran.code == static_cast<int>(Fault::rank));
    CHECK_MESSAGE(ran.err.find(" of rank 1 (pid ") != std::string::npos, ran.err);
    CHECK(ran.weights.empty());
  }
}

TEST_CASE("a loss that is no number is found in the process where it arose" *
          doctest::skip(!kCanFork)) {
  const auto told = [](const char* processes) {
    const Ran ran =
        on_gpus(kMlp, fmt::format("stages: 3, chunks: 2{}", processes), {"optimizer={sgd: 1e30}"});
    CHECK(ran.code == static_cast<int>(Fault::diverged));
    const std::string from = ran.err.substr(ran.err.find("the loss is"));
    return from.substr(0, from.find('\n'));  // rank 0 may report its last step after the error
  };
  CHECK(told("") == told(", processes: true"));
}

}  // namespace
}  // namespace dpt
