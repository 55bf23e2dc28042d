// A rank that is killed at any call to its GPU ends the run with a message that names it, and the
// other ranks end by themselves: none waits for the one that is gone.
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

// GPU 1 of a run dies at calls that are spread over all that a healthy run makes.
void die_everywhere(Words words, int64_t times) {
  CAPTURE(words[0]);
  words.insert(words.end(), {"device=cuda", "epochs=2", "data.limit=67"});
  Fleet healthy;
  const Ran well = run_spec(kMlp, words, healthy.opener());
  REQUIRE_MESSAGE(well.code == 0, well.err);
  const int64_t all = healthy.call_count(1);
  REQUIRE(all > times);
  for (int64_t i = 0; i < times; ++i) {
    const int64_t call = i * all / times;
    CAPTURE(call);
    Fleet gpus;
    const Ran ran = run_spec(kMlp, words, gpus.opener([call](FakeApi::Settings& s) {
      s.die_call = s.index == 1 ? call : -1;
    }));
    CHECK(ran.code == static_cast<int>(Fault::rank));
    CHECK_MESSAGE(ran.err.find("rank 1 (pid ") != std::string::npos, ran.err);
    CHECK_MESSAGE(ran.err.find("was killed by signal 9") != std::string::npos, ran.err);
    CHECK_MESSAGE(ran.err.find("dptrain: ") == ran.err.rfind("dptrain: "), ran.err);
    CHECK(ran.weights.empty());
    CHECK(gpus.closed() == gpus.opened() - 1);  // whoever waits is killed, and closes nothing
    CHECK_MESSAGE(gpus.leaks() == "not all are closed", gpus.leaks());
  }
}

constexpr int64_t kTimes = kSanitized ? 5 : 24;

TEST_CASE("a rank of ddp that dies at any call to its GPU leaves nobody waiting" *
          doctest::skip(!kCanFork)) {
  die_everywhere({"parallel={ddp: {bucket_cap_mb: 0.001}}", "devices=2"}, kTimes);
  if (kSanitized) return;
  die_everywhere({"parallel={ddp: {backend: gloo}}", "devices=3", "data.batch_size=30"}, kTimes);
  die_everywhere({"parallel={ddp: {shard: optimizer}}", "devices=2", "clip_grad_norm=0.5"}, kTimes);
}

TEST_CASE("a stage that dies at any call to its GPU leaves nobody waiting" *
          doctest::skip(!kCanFork)) {
  // Two communicators on each GPU, whose calls stand behind each other.
  die_everywhere({"parallel={pipeline: {stages: 2, chunks: 2, data_parallel: 2, processes: true}}"},
                 kTimes);
  if (kSanitized) return;
  die_everywhere({"parallel={pipeline: {stages: 2, chunks: 2, processes: true, backend: gloo}}"},
                 kTimes);
}

}  // namespace
}  // namespace dpt
