// Replicas of a model whose stages lie on several fake GPUs: the bits are those of ddp on as many
// GPUs as there are replicas, which computes the chunks one by one.
#include <functional>
#include <span>
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

// Two pipelines of two stages, two chunks each, a process for each replica.
std::string replicas(const std::string& keys = "") {
  return fmt::format("parallel={{pipeline: {{stages: 2, data_parallel: 2, chunks: 2{}{}}}}}",
                     keys.empty() ? "" : ", ", keys);
}

std::string ddp(const std::string& keys = "") {
  return fmt::format("parallel={{ddp: {{{}}}}}", keys);
}

Ran on_gpus(const std::string& yaml, Words words, const Words& more = {},
            const std::function<void(FakeApi::Settings&)>& settings = {}, bool clean = true) {
  Fleet gpus;
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("device=cuda");
  Ran out = run_spec(yaml, words, gpus.opener(settings));
  if (clean) CHECK_MESSAGE(gpus.leaks() == "", gpus.leaks());
  return out;
}

// The same bits as ddp with those keys.
void like_ddp(const std::string& yaml, const std::string& keys, const Words& more = {},
              const std::string& stage_keys = "") {
  CAPTURE(keys);
  CAPTURE(more.empty() ? "" : more[0]);
  const std::string both = keys + (keys.empty() || stage_keys.empty() ? "" : ", ") + stage_keys;
  same(on_gpus(yaml, {ddp(keys), "devices=2", "accumulate=2"}, more),
       on_gpus(yaml, {replicas(both)}, more));
}

TEST_CASE("replicas of pipelines on GPUs: the numbers of CPUs" * doctest::skip(!kCanFork)) {
  // The last batch leaves the second replica a sample, of which its second chunk has none.
  const Words last = {replicas(), "data.limit=67", "log.loss=rank0",
                      "loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"};
  Words cpu = last;
  cpu.insert(cpu.end(), {"cores=1", "device=cpu"});
  agree(on_gpus(kMlp, last), run_spec(kMlp, cpu), kSameNumbers);
}

TEST_CASE("replicas of pipelines on GPUs have the bits of ddp" * doctest::skip(!kCanFork)) {
  like_ddp(kMlp, "bucket_cap_mb: 0.001", {"epochs=2"});
  if (kSanitized) return;
  like_ddp(kMlp, "backend: gloo");
  like_ddp(kMlp, "bucket_cap_mb: 0.001", {"data.limit=65"});
  like_ddp(kMlp, "backend: gloo, compress: bf16", {"data.limit=65"});
  like_ddp(kMlp, "compress: fp16", {"clip_grad_norm={max_norm: 0.05, norm_type: inf}"});
  like_ddp(kImages, "");
  for (const char* keys : {"schedule: gpipe", "checkpoint: always", "checkpoint: except_last"})
    like_ddp(kImages, "bucket_cap_mb: 0.001", {"data.limit=35", "sync_batch_norm=true"}, keys);
  // What the CPUs sum wants no GPU of its own.
  same(on_gpus(kMlp, {replicas("backend: gloo")}),
       on_gpus(kMlp, {replicas(), "devices=[cuda:0, cuda:1, cuda:0, cuda:1]"}));
}

TEST_CASE("replicas of stages share their optimizer states" * doctest::skip(!kCanFork)) {
  // Norms are sums in double over other pieces.
  const Words clipped = {"clip_grad_norm=0.5", "epochs=2"};
  agree(on_gpus(kMlp, {replicas("shard: optimizer, bucket_cap_mb: 0.001")}, clipped),
        on_gpus(kMlp, {replicas()}, clipped), 1e-9);
  if (kSanitized) return;
  const Ran whole = on_gpus(kMlp, {replicas("compress: bf16, bucket_cap_mb: 0.001")}),
            cpus = on_gpus(kMlp, {replicas("compress: bf16, backend: gloo")});
  same(whole, on_gpus(kMlp, {replicas("compress: bf16, shard: optimizer, bucket_cap_mb: 0.001")}));
  same(cpus, on_gpus(kMlp, {replicas("compress: bf16, shard: optimizer, backend: gloo")}));
}

TEST_CASE("replicas of layers that are placed on GPUs" * doctest::skip(!kCanFork)) {
  std::string placed = kMlp;
  const std::string last = "{linear: 10}";
  placed.replace(placed.find(last), last.size(), "{linear: 10, device: 1}");
  const Words words = {"devices=4", "data.limit=65", ddp("bucket_cap_mb: 0.001")};
  same(on_gpus(placed, words), on_gpus(kMlp, {"devices=2", "data.limit=65", ddp()}));
}

TEST_CASE("an event that is left out between replicas of stages is found" *
          doctest::skip(!kCanFork)) {
  // Each bucket waits for what makes it, the update for all sums.
  int64_t found = 0;
  for (int64_t n = 0; n < 12; n += kSanitized ? 5 : 1) {
    const Ran ran = on_gpus(
        kMlp, {replicas("bucket_cap_mb: 0.001"), "steps=3", "evaluate=false"}, {},
        [n](FakeApi::Settings& s) { s.deaf_wait = s.index == 3 ? n : -1; }, false);
    if (ran.code == 0) continue;
    CAPTURE(ran.err);
    CHECK(ran.err.find(": fake GPU: ") != std::string::npos);
    ++found;
  }
  CHECK(found > (kSanitized ? 1 : 9));
}

TEST_CASE("a call that fails in one replica ends the run with its error" *
          doctest::skip(!kCanFork)) {
  int failures = 0;
  for (int64_t n = 0;; n += kSanitized ? 121 : 41) {
    CAPTURE(n);
    const Ran failed = on_gpus(kMlp, {replicas(), "steps=2", "evaluate=false"}, {},
                               [n](FakeApi::Settings& s) { s.fail_call = s.index == 2 ? n : -1; });
    if (failed.code == 0) break;  // there are fewer calls
    ++failures;
    CHECK(failed.err.find(fmt::format("call {} of the fake GPU", n)) != std::string::npos);
    CHECK(failed.weights.empty());
  }
  CHECK(failures > (kSanitized ? 1 : 4));
}

TEST_CASE("a loss that is no number ends all replicas" * doctest::skip(!kCanFork)) {
  const Ran ran = on_gpus(kMlp, {replicas(), "optimizer={sgd: 1e30}"});
  CHECK(ran.code == static_cast<int>(Fault::diverged));
}

}  // namespace
}  // namespace dpt
