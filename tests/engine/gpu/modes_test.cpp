// Several fake GPUs train to the numbers that as many CPU devices come to.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include "backend/cuda/fake_api.h"
#include "base/units.h"
#include "data/folder.h"
#include "engine/gpu/fake_fleet.h"
#include "engine/gpu/fake_gpu.h"
#include "engine/gpu/gpu_specs.h"
#include "golden_text.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using cuda::FakeApi;
using Words = std::vector<std::string>;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void compare(const std::string& yaml, const Words& how, double tolerance = kSameNumbers,
             const Words& on_gpus = {}) {
  CAPTURE(fmt::format("{}", fmt::join(how, " ")));
  Fleet gpus;
  const Ran gpu = run_spec(yaml, with(with(how, {"device=cuda"}), on_gpus), gpus.opener());
  agree(gpu, run_spec(yaml, with(how, {"device=cpu", "cores=1"})), tolerance);
  CHECK(gpus.opened() > 1);
  CHECK(gpus.leaks() == "");
}

TEST_CASE("ddp on GPUs: the numbers of ddp on as many CPUs" * doctest::skip(!kCanFork)) {
  // Batches that are cut unevenly, or leave the last rank without samples, are exact, too.
  compare(kMlp, {"parallel=ddp", "devices=2"});
  compare(kMlp, {"parallel=ddp", "devices=3", "data.batch_size=30"});
  compare(kMlp, {"parallel=ddp", "devices=2", "data.limit=65", "log.loss=rank0"});
  compare(kMlp, {"parallel=ddp", "devices=2", "accumulate=3", "data.limit=67"});
  compare(kMlp, {"parallel=ddp", "devices=2", "clip_grad_norm=0.5"});
  compare(kMlp, {"parallel=ddp", "devices=2", "data.limit=65", "log.loss=rank0",
                 "loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"});
  compare(kImages, {"parallel=ddp", "devices=2"});
}

TEST_CASE("sync_batch_norm sums over all GPUs, also those without rows" *
          doctest::skip(!kCanFork)) {
  const Words sync = {"sync_batch_norm=true", "devices=2"};
  compare(kImages, with(sync, {"parallel=ddp"}));
  // The last batch has three samples, in micro-batches of 2 and 0, 1 and 0, or 2 and 1.
  compare(kImages, with(sync, {"parallel=ddp", "data.limit=35", "accumulate=2"}));
  compare(kImages, with(sync, {"parallel=dp", "data.limit=35"}));
}

// The second step of an epoch has no target that counts: its loss is nan, and Adam goes on.
TEST_CASE("a step whose targets are all ignored is made on GPUs, by CPUs' numbers, and counted") {
  const Folder folder;
  folder.write("t.csv",
               "1,2,0\n3,-1,1\n0,4,1\n2,1,2\n1,1,-100\n1,2,-100\n3,1,-100\n2,2,-100\n"
               "-1,7,-100\n2,2,2\n0.5,1,0\n1,3,2\n");
  const std::string yaml = "data:\n  dataset: {csv: {path: " + folder.file("t.csv") +
                           ", test_path: " + folder.file("t.csv") + R"(, classes: 3}}
  batch_size: 4
  shuffle: false
model: [{linear: 5}, tanh, {linear: 3}]
loss: {cross_entropy: {ignore_index: -100, label_smoothing: 0.1}}
optimizer: {adam: 0.1}
epochs: 2
log: {every: 1}
evaluate: {batch_size: 4}
)";
  const Words nll = {"model=[{linear: 5}, tanh, {linear: 3}, log_softmax]", "loss=nll_loss"};
  std::vector<Words> ways = {{"parallel=dp", "devices=2"},
                             {"parallel={pipeline: {stages: 2, chunks: 2}}"},
                             with({"parallel=dp", "devices=2", "clip_grad_norm=0.5"}, nll)};
  if (kCanFork) ways.push_back({"parallel=ddp", "devices=2"});
  for (const Words& how : ways) {
    CAPTURE(fmt::format("{}", fmt::join(how, " ")));
    Fleet gpus;
    const Ran gpu = run_spec(yaml, with(how, {"device=cuda"}), gpus.opener());
    agree(gpu, run_spec(yaml, with(how, {"device=cpu", "cores=1"})), kSameNumbers);
    CHECK_MESSAGE(has(gpu.err, "warning: epoch 1, step 2: "), gpu.err);
    CHECK(gpu.metrics.find("\"loss\": null") != std::string::npos);
  }
  // No step overflowed, so the scale of the loss is what it was.
  Fleet gpus;
  const Ran scaled = run_spec(
      yaml, {"device=cuda", "precision={fp16: {lists: cuda, emulate: true, init_scale: 256}}"},
      gpus.opener());
  CHECK_MESSAGE(scaled.code == 0, scaled.err);
  CHECK(scaled.metrics.find("\"skipped\": true") == std::string::npos);
  CHECK(scaled.metrics.find("\"loss_scale\": 128") == std::string::npos);
}

TEST_CASE("metrics of outputs on GPUs are those of as many CPUs, in every mode") {
  const Words classes = {"evaluate.metrics=[accuracy, top3, f1, confusion_matrix]"};
  const Words labels = {"evaluate.metrics=[accuracy, precision, recall, f1, auc]",
                        "loss=bce_with_logits_loss", "data.target_transforms=[one_hot]"};
  std::vector<Words> ways = {{"parallel=dp", "devices=2"},
                             {"parallel={pipeline: {stages: 2, chunks: 2}}"}};
  if (kCanFork) ways.push_back({"parallel=ddp", "devices=2"});
  for (size_t i = 0; i < 2 * ways.size(); ++i) {
    const Words& how = ways[i / 2];
    const Words common = with({"epochs=1", "data.validation=0.2"}, i % 2 == 0 ? classes : labels);
    CAPTURE(fmt::format("{} {}", fmt::join(how, " "), common[2]));
    Fleet gpus;
    const Ran gpu = run_spec(kMlp, with(with(common, how), {"device=cuda"}), gpus.opener());
    const Ran cpu = run_spec(kMlp, with(with(common, how), {"device=cpu", "cores=1"}));
    CHECK_MESSAGE(gpu.code == 0, gpu.err);
    // The scores are 1e-6 apart, and no two of them so close: the same predictions.
    const auto counts = [](const Ran& ran) {
      const size_t from = ran.out.find("Validation accuracy");
      REQUIRE_MESSAGE(from != ran.out.npos, (ran.out + ran.err));
      return ran.out.substr(from, ran.out.find('\n', from) - from);
    };
    CHECK(counts(gpu) == counts(cpu));
    CHECK(has(gpu.out, "(last weights, epoch 1)"));
  }
}

TEST_CASE("ddp on GPUs skips the steps that overflow on any" * doctest::skip(!kCanFork)) {
  // As on one GPU: a rounding that falls the other way is one in 2048 of an f16.
  compare(kMlp,
          {"parallel=ddp", "devices=2",
           "precision={fp16: {lists: cuda, emulate: true, init_scale: 67108864}}"},
          0.004);
}

TEST_CASE("ddp on GPUs whose gradients the CPUs sum, also with two ranks on one GPU" *
          doctest::skip(!kCanFork)) {
  for (const Words& where : {Words{}, {"devices=[cuda:0, cuda:0]"}})
    compare(kMlp,
            {"parallel={ddp: {backend: gloo}}", "devices=2", "data.limit=65", "accumulate=2",
             "log.loss=rank0"},
            kSameNumbers, where);
}

// What is rounded to halves may fall to either side where sums are 1e-7 apart: 1 in 2000 of an fp16
// and 1 in 250 of a bf16 of the gradients, which Adam's first steps make of the weights' steps.
constexpr double kRoundedGradients = 1e-3;

TEST_CASE("gradients cross as halves: the numbers of CPUs" * doctest::skip(!kCanFork)) {
  Fleet uncompressed;
  const Ran whole =
      run_spec(kMlp, {"device=cuda", "devices=2", "parallel=ddp"}, uncompressed.opener());
  CHECK_MESSAGE(whole.code == 0, whole.err);
  for (const std::string how : {"compress: fp16", "compress: bf16", "compress: fp16, backend: gloo",
                                "compress: bf16, shard: optimizer"}) {
    // gloo is asked for on GPUs alone.
    const std::string on_cpus = how.substr(0, how.find(", backend"));
    compare(kMlp, {"parallel={ddp: {" + on_cpus + "}}", "devices=2", "accumulate=2"},
            kRoundedGradients, {"parallel={ddp: {" + how + "}}"});
    Fleet gpus;
    CHECK(
        run_spec(kMlp, {"device=cuda", "devices=2", "parallel={ddp: {" + how + "}}"}, gpus.opener())
            .weights != whole.weights);
    if (kSanitized) return;
  }
  compare(kImages, {"parallel={ddp: {compress: fp16}}", "devices=3", "data.batch_size=15"},
          kRoundedGradients);
}

TEST_CASE("compress of a single rank rounds, too" * doctest::skip(!kCanFork)) {
  const auto weights = [](const std::string& mode) {
    Fleet gpus;
    const Ran ran = run_spec(kMlp, {"device=cuda", "devices=1", mode}, gpus.opener());
    CHECK_MESSAGE(ran.code == 0, ran.err);
    return ran.weights;
  };
  CHECK(weights("parallel={ddp: {compress: fp16}}") != weights("parallel=ddp"));
  CHECK(weights("parallel={ddp: {shard: optimizer}}") == weights("parallel=ddp"));
}

TEST_CASE("`shard: optimizer` has the bits of whole states" * doctest::skip(!kCanFork)) {
  const auto weights = [](const std::string& mode, Words words) {
    CAPTURE(mode);
    Fleet gpus;
    words.insert(words.begin(), {"device=cuda", "parallel={ddp: {" + mode + "}}"});
    const Ran ran = run_spec(kMlp, words, gpus.opener());
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK(gpus.leaks() == "");
    CHECK(!ran.weights.empty());
    return ran.weights;
  };
  const Words ways[] = {
      {"devices=2", "data.limit=65"},  // the last rank has no samples in the end
      {"devices=3", "data.batch_size=30", "accumulate=2",
       "optimizer={adagrad: {lr: 0.1, initial_accumulator_value: 0.1}}"},
      {"devices=2", "optimizer={sgd: {lr: 0.1, momentum: 0.9}}", "clip_grad_norm=0.5"},
      {"devices=2", "clip_grad_norm={max_norm: 0.05, norm_type: inf}"},
      with({"devices=2", "optimizer={adam_w: {weight_decay: 0.1}}"}, kGroups),
      {"devices=2", "precision={fp16: {lists: cuda, emulate: true, init_scale: 67108864}}"}};
  for (const Words& words : std::span(ways).first(kSanitized ? 2 : std::size(ways)))
    for (const std::string& with :
         {std::string("bucket_cap_mb: 0.001"), std::string("backend: gloo")})
      CHECK(weights(with, words) == weights(with + ", shard: optimizer", words));
}

TEST_CASE("dp on GPUs: the numbers of dp on as many CPUs") {
  compare(kMlp, {"parallel={dp: {loss: distributed}}", "devices=2"});
  compare(kMlp, {"parallel={dp: {loss: distributed}}", "devices=3", "accumulate=2",
                 "clip_grad_norm=0.5", "data.limit=66"});
  compare(kImages, {"parallel={dp: {loss: distributed}}", "devices=2"});
  // The loss of all on the first GPU, and on another one.
  compare(kMlp, {"parallel=dp", "devices=2"});
  compare(kMlp, {"parallel={dp: {output_device: 1}}", "devices=3", "accumulate=2", "data.limit=66",
                 "loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"});
  compare(kImages, {"parallel=dp", "devices=2"}, kSameNumbers, {"devices=[cuda:0, cuda:0]"});
  // Two replicas on one GPU, for study.
  compare(kMlp, {"parallel={dp: {loss: distributed}}", "devices=2"}, kSameNumbers,
          {"devices=[cuda:0, cuda:0]"});
}

TEST_CASE("dp that gathers its loss is captured: the bits of calls one by one, and of its CPUs") {
  const auto ran = [](const Words& how, bool graphs) {
    Fleet gpus;
    const Ran out = run_spec(kMlp,
                             with(with({"device=cuda", "evaluate=false"}, how),
                                  {graphs ? "graphs=true" : "graphs=false"}),
                             gpus.opener());
    CHECK_MESSAGE(gpus.leaks() == "", gpus.leaks());
    for (int gpu = 0; gpu < gpus.opened(); ++gpu) {
      CAPTURE(gpu);
      CHECK(gpus.calls(gpu).find("host waits") == std::string::npos);
      // Three steps an epoch, of which two are alike. The first of either shape is no graph.
      CHECK(gpus.graphs(gpu) == (graphs ? 5 : 0));
    }
    return out;
  };
  for (const Words& how : std::vector<Words>{
           {"parallel=dp", "devices=2"},
           // The last batch leaves two of four GPUs without rows.
           {"parallel={dp: {output_device: 2}}", "devices=4", "data.limit=66"},
           {"parallel={dp: {output_device: 1}}", "devices=3", "accumulate=2", "data.limit=66",
            "loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"}}) {
    CAPTURE(fmt::format("{}", fmt::join(how, " ")));
    const Ran captured = ran(how, true);
    same(captured, ran(how, false));
    compare(kMlp, how);
  }
  Fleet shared;
  const Ran by_turns =
      run_spec(kMlp, {"device=cuda", "evaluate=false", "parallel=dp", "devices=[cuda:0, cuda:0]"},
               shared.opener());
  CHECK_MESSAGE(by_turns.code == 0, by_turns.err);
  CHECK(shared.graphs(0) == 0);
}

TEST_CASE("an event that is left out around the loss on one GPU is found") {
  // Of a step, and of one that is captured behind it.
  for (const int gpu : {0, 1}) {
    int64_t found = 0;
    for (int64_t n = 0; n < 24; n += kSanitized ? 7 : 1) {
      CAPTURE(n);
      Fleet gpus;
      const Ran ran = run_spec(
          kMlp, {"device=cuda", "evaluate=false", "parallel=dp", "devices=2", "steps=2"},
          gpus.opener([&](FakeApi::Settings& s) { s.deaf_wait = s.index == gpu ? n : -1; }));
      if (ran.code == 0) continue;
      CAPTURE(ran.err);
      CHECK(ran.err.find("fake GPU: ") != std::string::npos);
      ++found;
    }
    // All but those behind which another event orders the same work: the sum of the losses follows
    // the copies back from the loss's GPU.
    CHECK(found > (kSanitized ? 0 : 7));
  }
}

TEST_CASE("sums by the CPUs give all modes the same bits" * doctest::skip(!kCanFork)) {
  const auto weights = [](const std::string& mode) {
    Fleet gpus;
    const Ran ran = run_spec(kMlp, {"device=cuda", "devices=2", "reproducible={shards: 2}", mode},
                             gpus.opener());
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK(!ran.weights.empty());
    return ran.weights;
  };
  CHECK(weights("parallel={ddp: {backend: gloo}}") ==
        weights("parallel={dp: {backend: gloo, loss: distributed}}"));
}

// A run of few steps, whose buckets are as small as can be.
const Words kSmall = {"parallel={ddp: {bucket_cap_mb: 0.001, timeout: 1}}", "devices=2",
                      "device=cuda", "epochs=1", "evaluate=false"};

TEST_CASE("an event that is left out of a step of ddp is found" * doctest::skip(!kCanFork)) {
  // Buckets wait for backward, sums of losses for the loss, the update for all sums; with pieces
  // the weights that go to all for the update, and the next step for them.
  for (const Words& how :
       {Words{}, {"parallel={ddp: {shard: optimizer, compress: bf16, timeout: 1}}"}}) {
    int64_t found = 0;
    for (int64_t n = 0, right = 0; right < 3; n += kSanitized ? 3 : 1) {
      Fleet gpus;
      const Ran ran = run_spec(
          kMlp, with(kSmall, how),
          gpus.opener([n](FakeApi::Settings& s) { s.deaf_wait = s.index == 1 ? n : -1; }), 1);
      // There is no such event, or the GPUs were in order without it, as on a busy machine.
      right = ran.code == 0 ? right + 1 : 0;
      if (ran.code == 0) continue;
      CAPTURE(ran.err);
      // A sum that escapes the capture leaves the ranks with different calls, one of which waits
      // for its GPU where the weights are compared.
      const bool told =
          ran.err.find(": fake GPU: ") != std::string::npos ||
          ran.err.find("did not start the sum over GPUs within 1 s") != std::string::npos ||
          ran.err.find("step 3 did not reach the barrier within 1 s") != std::string::npos;
      CHECK(told);
      ++found;
    }
    CHECK(found > (kSanitized ? 1 : 10));
  }
}

TEST_CASE("GPUs take their batches in one way, also where only some have room for the data set" *
          doctest::skip(!kCanFork)) {
  // The fake GPU's data set is some KiB, beside 256 MiB and more that are kept for libraries.
  const auto gathers = [](size_t room_of_second, const Words& how) {
    Fleet gpus;
    // As where the user has NCCL register buffers, which it does for captured calls of all at once.
    setenv("NCCL_GRAPH_REGISTER", "1", 1);
    const Ran ran = run_spec(kMlp, with(kSmall, how), gpus.opener([&](FakeApi::Settings& s) {
      if (s.index == 1) s.free_memory = room_of_second;
    }));
    setenv("NCCL_GRAPH_REGISTER", "0", 1);
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK_MESSAGE(gpus.leaks() == "", gpus.leaks());
    const auto found = [&](int gpu) { return gpus.calls(gpu).find("Gather") != std::string::npos; };
    CHECK(found(0) == found(1));
    return found(0);
  };
  CHECK(gathers(4 * kGiB, {}));
  CHECK_FALSE(gathers(1, {}));
}

TEST_CASE("a GPU is shared by the workers that have it, not by those that call theirs the same" *
          doctest::skip(!kCanFork)) {
  // Room for one data set beside what is kept for libraries, but not for a half of all of it.
  constexpr size_t kRoom = 300 * kMiB;
  const auto gathers = [](bool one_each) {
    Fleet gpus;
    struct Opened {
      std::atomic<int> count;
    };
    void* const memory =
        mmap(nullptr, sizeof(Opened), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto& opened = *static_cast<Opened*>(memory);
    const Ran ran = run_spec(
        kMlp,
        {"parallel={ddp: {backend: gloo}}", "devices=[cuda:0, cuda:0]", "device=cuda", "epochs=1"},
        gpus.opener([&](FakeApi::Settings& s) {
          const int number = opened.count++;
          if (one_each) s.index = number;
          s.free_memory = kRoom;
        }));
    munmap(memory, sizeof(Opened));
    CHECK_MESSAGE(ran.code == 0, ran.err);
    return gpus.calls(0).find("Gather") != std::string::npos;
  };
  CHECK(gathers(true));
  CHECK_FALSE(gathers(false));
}

TEST_CASE("ddp by NCCL has the same bits in each run" * doctest::skip(!kCanFork)) {
  const auto weights = [] {
    Fleet gpus;
    const Ran ran = run_spec(kMlp,
                             {"parallel=ddp", "devices=3", "data.batch_size=30", "device=cuda",
                              "epochs=1", "evaluate=false"},
                             gpus.opener());
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK(!ran.weights.empty());
    return ran.weights;
  };
  const std::string first = weights();
  CHECK(first == weights());
  CHECK(first == weights());
}

TEST_CASE("steps of ddp sum each bucket as soon as it is made, the first one without a graph" *
          doctest::skip(!kCanFork)) {
  Fleet gpus;
  const Ran ran = run_spec(kMlp, with(kSmall, {"data.limit=64"}), gpus.opener());
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(gpus.calls(0) != gpus.calls(1));  // only one of them brings the weights back
  check_golden(without_compiler(gpus.calls(0)), "engine/gpu/golden/ddp_step.txt");
}

TEST_CASE("a rank that does not come is named" * doctest::skip(!kCanFork)) {
  const auto err = [](int64_t call) {
    Fleet gpus;
    const auto stalls = [=](FakeApi::Settings& s) { s.stall_call = s.index == 1 ? call : -1; };
    const Ran ran = run_spec(kMlp, kSmall, gpus.opener(stalls), 1);
    CHECK(ran.code == static_cast<int>(Fault::rank));
    CHECK(ran.weights.empty());
    return ran.err.substr(ran.err.find("dptrain: "));
  };
  CHECK(err(5).starts_with("dptrain: worker 1 of rank 1 (pid "));  // before it joins
  // Before it has launched its step, and in calls while the others wait for it.
  for (const int64_t call : {100, 150})
    CHECK(err(call).find(" of rank 1 (pid ") != std::string::npos);
}

TEST_CASE("Ctrl-C of one rank ends all after the same step" * doctest::skip(!kCanFork)) {
  Fleet gpus;
  const Ran ran = run_spec(kMlp, with(kSmall, {"epochs=30"}), gpus.opener([](FakeApi::Settings& s) {
    s.interrupt_call = s.index == 1 ? 250 : -1;
  }));
  CHECK(ran.code == 130);
  CHECK(!ran.weights.empty());
  CHECK(gpus.leaks() == "");
}

TEST_CASE("a call that fails in a captured step leaves no capture that NCCL waits for" *
          doctest::skip(!kCanFork)) {
  Fleet healthy;
  REQUIRE(run_spec(kMlp, kSmall, healthy.opener()).code == 0);
  // The second of three steps is captured behind the first one.
  const int64_t all = healthy.call_count(1);
  for (int64_t n = all / 3; n < all * 2 / 3; n += kSanitized ? 29 : 7) {
    CAPTURE(n);
    Fleet gpus;
    const Ran failed =
        run_spec(kMlp, kSmall,
                 gpus.opener([n](FakeApi::Settings& s) { s.fail_call = s.index == 1 ? n : -1; }));
    CHECK(failed.err.find(fmt::format("call {} of the fake GPU", n)) != std::string::npos);
    CHECK_MESSAGE(gpus.leaks() == "", gpus.leaks());
  }
}

TEST_CASE("a call that fails on one GPU ends the run with its error" * doctest::skip(!kCanFork)) {
  int failures = 0;
  for (int64_t n = 0;; n += 31) {
    CAPTURE(n);
    Fleet gpus;
    const Ran failed =
        run_spec(kMlp, kSmall,
                 gpus.opener([n](FakeApi::Settings& s) { s.fail_call = s.index == 1 ? n : -1; }));
    if (failed.code == 0) break;  // there are fewer calls
    ++failures;
    const bool expected = failed.code == static_cast<int>(Fault::device) ||
                          failed.code == static_cast<int>(Fault::memory);
    CHECK(expected);
    CHECK(failed.err.find(fmt::format("call {} of the fake GPU", n)) != std::string::npos);
    CHECK(failed.weights.empty());
    CHECK(gpus.leaks() == "");
  }
  CHECK(failures > 5);
}

}  // namespace
}  // namespace dpt
