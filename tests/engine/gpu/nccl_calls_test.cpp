// Which calls of NCCL GPUs make, in which order, on which streams, and when memory is measured.
#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/units.h"
#include "engine/gpu/fake_fleet.h"
#include "engine/gpu/gpu_specs.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using cuda::FakeApi;
using Words = std::vector<std::string>;

// The calls of each GPU of a run of kMlp whose step is not captured.
std::vector<std::vector<std::string>> calls_of(
    Words words, const std::function<void(FakeApi::Settings&)>& settings = {}) {
  words.insert(words.end(), {"device=cuda", "steps=1", "evaluate=false"});
  Fleet gpus;
  const Ran ran = run_spec(kMlp, words, gpus.opener(settings));
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(gpus.leaks() == "", gpus.leaks());
  std::vector<std::vector<std::string>> out;
  for (int gpu = 0; gpu < gpus.opened(); ++gpu) {
    std::vector<std::string>& lines = out.emplace_back();
    const std::string all = gpus.calls(gpu);
    for (size_t at = 0, end = 0; (end = all.find('\n', at)) != std::string::npos; at = end + 1)
      lines.push_back(all.substr(at, end - at));
  }
  return out;
}

bool has(const std::string& line, std::string_view word) {
  return line.find(word) != std::string::npos;
}

std::ptrdiff_t count(const std::vector<std::string>& calls, std::string_view word) {
  return std::ranges::count_if(calls, [&](const std::string& c) { return has(c, word); });
}

// Where the first line with that word is, or the last one.
std::ptrdiff_t first(const std::vector<std::string>& calls, std::string_view word) {
  const auto at = std::ranges::find_if(calls, [&](const std::string& c) { return has(c, word); });
  REQUIRE_MESSAGE(at != calls.end(), word);
  return at - calls.begin();
}
std::ptrdiff_t last(const std::vector<std::string>& calls, std::string_view word) {
  for (std::ptrdiff_t i = std::ssize(calls); --i >= 0;)
    if (has(calls[static_cast<size_t>(i)], word)) return i;
  FAIL_CHECK(word);
  return -1;
}

TEST_CASE("data sets take what communicators leave of a GPU's memory" * doctest::skip(!kCanFork)) {
  // 256 MiB are kept for libraries, and where GPUs send 512 more for NCCL's connections.
  const auto resident = [](const Words& words, size_t free, size_t communicator) {
    const auto all = calls_of(words, [=](FakeApi::Settings& s) {
      s.free_memory = free;
      s.communicator_memory = communicator;
    });
    return count(all[0], "Gather") > 0;
  };
  const Words ddp = {"parallel=ddp", "devices=2"};
  CHECK(resident(ddp, 300 * kMiB, 20 * kMiB));
  CHECK_FALSE(resident(ddp, 300 * kMiB, 100 * kMiB));
  const Words dp = {"parallel=dp", "devices=2"};
  CHECK(resident(dp, 800 * kMiB, 20 * kMiB));
  CHECK_FALSE(resident(dp, 700 * kMiB, 20 * kMiB));
  // Both communicators of a GPU.
  const Words pipeline = {
      "parallel={pipeline: {stages: 2, chunks: 2, data_parallel: 2, processes: true}}"};
  CHECK(resident(pipeline, 840 * kMiB, 20 * kMiB));
  CHECK_FALSE(resident(pipeline, 840 * kMiB, 50 * kMiB));
}

TEST_CASE("what crosses at once is a group of calls" * doctest::skip(!kCanFork)) {
  // The loss of both on the first GPU: its inputs come, its gradients go back.
  for (const auto& calls : calls_of({"parallel=dp", "devices=2", "loss=cross_entropy"})) {
    CHECK(count(calls, "group") == 4);  // two, each with an end
    CHECK(count(calls, " send ") + count(calls, " receive ") > 2);
  }
  // The weights of all buckets.
  for (const auto& calls :
       calls_of({"parallel={ddp: {shard: optimizer, bucket_cap_mb: 0.001}}", "devices=2"})) {
    const std::ptrdiff_t begin = first(calls, "group"), end = first(calls, "end of the group");
    CHECK(count(calls, "all_gather") > 1);
    CHECK(end - begin - 1 == count(calls, "all_gather"));
    CHECK(last(calls, "all_gather") == end - 1);
  }
}

TEST_CASE("the last stage's decision goes to all other stages by one call" *
          doctest::skip(!kCanFork)) {
  const auto all = calls_of({"parallel={pipeline: {stages: 3, chunks: 2, processes: true}}"});
  REQUIRE(all.size() == 3);
  for (const auto& calls : all) CHECK(count(calls, "broadcast") == 1);
  // Activations to the next stage and gradients back, for each chunk.
  CHECK(count(all[0], " send ") == 2);
  CHECK(count(all[1], " send ") == 4);
  CHECK(count(all[2], " send ") == 2);
}

TEST_CASE("what waits for other GPUs is on an urgent stream" * doctest::skip(!kCanFork)) {
  for (const Words& how :
       std::vector<Words>{{"parallel=ddp", "devices=2"},
                          {"parallel={pipeline: {stages: 2, chunks: 2, processes: true}}"}}) {
    CAPTURE(how[0]);
    for (const auto& calls : calls_of(how)) {
      const std::string& line = calls[static_cast<size_t>(first(calls, " is urgent"))];
      const std::string stream = line.substr(0, line.find(' ') + 1);
      CHECK(count(calls, " is urgent") == 1);
      CHECK(stream != "s0 ");  // that of the kernels
      for (const std::string& call : calls)
        if (has(call, "all_reduce") || has(call, "broadcast") || has(call, " send ") ||
            has(call, " receive "))
          CHECK_MESSAGE(call.starts_with(stream), call);
    }
  }
}

TEST_CASE("stages that send occupy few blocks of a GPU while they wait" *
          doctest::skip(!kCanFork)) {
  const auto all =
      calls_of({"parallel={pipeline: {stages: 2, chunks: 2, data_parallel: 2, processes: true}}"});
  for (const auto& calls : all) CHECK(count(calls, "join with at most 8 blocks") == 1);
  for (const auto& calls : calls_of({"parallel=ddp", "devices=2"}))
    CHECK(count(calls, "join with at most") == 0);
}

TEST_CASE("losses are summed before gradients, beside the backward part" *
          doctest::skip(!kCanFork)) {
  for (const char* mode : {"parallel={ddp: {bucket_cap_mb: 0.001}}",
                           "parallel={dp: {bucket_cap_mb: 0.001, loss: distributed}}",
                           "parallel={ddp: {bucket_cap_mb: 0.001, shard: optimizer}}"}) {
    CAPTURE(std::string(mode));
    const char* const sums = has(mode, "shard") ? "s1 reduce_scatter" : "s1 all_reduce";
    for (const auto& calls : calls_of({mode, "devices=2", "accumulate=2"})) {
      CHECK(count(calls, "x f64") == 1);
      const auto losses = first(calls, "s1 all_reduce 4 x f64");  // two of each rank
      const auto gradients = std::ranges::find_if(
          calls, [&](const std::string& c) { return has(c, sums) && has(c, "x f32"); });
      REQUIRE(gradients != calls.end());
      CHECK(losses < gradients - calls.begin());
      // Kernels wait for all of them at once.
      CHECK(first(calls, "s0 wait") > last(calls, sums));
    }
  }
  // The losses of both on the first GPU.
  for (const auto& calls :
       calls_of({"parallel={dp: {bucket_cap_mb: 0.001}}", "devices=2", "accumulate=2"}))
    CHECK(first(calls, "s1 all_reduce 8 x f64") < first(calls, "x f32"));
}

TEST_CASE("replicas of a last stage sum losses before their gradients" * doctest::skip(!kCanFork)) {
  for (const char* apart : {"false", "true"}) {
    CAPTURE(std::string(apart));
    const auto all = calls_of({fmt::format(
        "parallel={{pipeline: {{stages: 2, chunks: 2, data_parallel: 2, processes: {}}}}}",
        apart)});
    REQUIRE(all.size() == 4);
    for (const size_t gpu : {1U, 3U}) {
      CHECK(count(all[gpu], "all_reduce 4 x f64") == 1);
      const auto gradients = std::ranges::find_if(
          all[gpu], [](const std::string& c) { return has(c, "all_reduce") && has(c, "x f32"); });
      REQUIRE(gradients != all[gpu].end());
      CHECK(first(all[gpu], "all_reduce 4 x f64") < gradients - all[gpu].begin());
    }
    for (const size_t gpu : {0U, 2U}) CHECK(count(all[gpu], "x f64") == 0);
  }
}

}  // namespace
}  // namespace dpt
