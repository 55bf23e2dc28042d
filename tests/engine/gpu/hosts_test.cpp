// Fake GPUs of several pretended hosts (machines) end in the bits of as many GPUs of one host.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/signals.h"
#include "checkpoint/store.h"
#include "data/folder.h"
#include "engine/gpu/fake_fleet.h"
#include "engine/gpu/gpu_specs.h"
#include "train/host_runs.h"

namespace dpt {
namespace {

using cuda::FakeApi;
using Words = std::vector<std::string>;
using Ranks = std::vector<int>;

Words ddp(const std::string& keys, Words more = {}) {
  more.insert(more.begin(), {"device=cuda", fmt::format("parallel={{ddp: {{{}}}}}", keys)});
  return more;
}

HostRun run_on(const std::string& yaml, Words words, HostRunSettings settings,
               const std::function<void(FakeApi::Settings&)>& change = {}) {
  Fleet gpus, test_gpus;
  settings.gpus = gpus.opener(change);
  settings.test_gpus = test_gpus.opener();
  const bool three = std::accumulate(settings.ranks.begin(), settings.ranks.end(), 0) == 3;
  if (three) words.emplace_back("data.batch_size=30");
  HostRun out = run_on_hosts(yaml, settings, words);
  CHECK_MESSAGE(gpus.leaks() + test_gpus.leaks() == "", gpus.leaks(), test_gpus.leaks());
  return out;
}

// All hosts have the weights and the evaluation of the first run.
void same_run(const HostRun& one, const HostRun& several) {
  CHECK(one.errors[0] == "");
  for (const std::string& e : several.errors) CHECK(e == "");
  CHECK(several.weights[0] == one.weights[0]);
  for (const std::vector<float>& own : several.weights)
    CHECK(std::equal(own.begin(), own.end(), one.weights[0].begin()));
  for (const Evaluation& e : several.evaluations) {
    CHECK(e.loss == one.evaluations[0].loss);
    CHECK(e.accuracy == one.evaluations[0].accuracy);
    CHECK(e.confusion_matrix == one.evaluations[0].confusion_matrix);
    for (const NamedValue& metric : one.evaluations[0].metrics)
      CHECK(e.find(metric.name) == metric.value);
  }
  for (const Outcome& o : several.outcomes) {
    CHECK(o.steps == one.outcomes[0].steps);
    CHECK(o.stopped_by == one.outcomes[0].stopped_by);
  }
}

// The same bits, however GPUs are split over hosts.
void check_same(const std::string& yaml, const Words& words,
                const std::vector<Ranks>& hosts = {{1, 1}}) {
  for (const Ranks& ranks : hosts) {
    CAPTURE(fmt::format("{}; ranks of hosts: {}", fmt::join(words, " "), fmt::join(ranks, ", ")));
    int world = 0;
    for (const int n : ranks) world += n;
    same_run(run_on(yaml, words, {.ranks = {world}}), run_on(yaml, words, {.ranks = ranks}));
  }
}

const std::vector<Ranks> kHosts = {{1, 1}, {2, 2}, {1, 1, 1}, {1, 2}};

}  // namespace

TEST_CASE("hosts of GPUs: the bits of one host with as many GPUs") {
  const Words metrics = {"epochs=2", "evaluate.metrics=[accuracy, top3, f1, confusion_matrix]"};
  check_same(kMlp, ddp("", metrics), kHosts);
  check_same(kMlp, ddp("bucket_cap_mb: 0.001", {"epochs=2", "data.limit=65"}));
  check_same(kImages, ddp(""), {{1, 1}, {1, 1, 1}});
  // Several launches wait in the queue, or none.
  check_same(kMlp, ddp("", {"graphs=false", "epochs=2"}));
}

TEST_CASE("hosts of GPUs: accumulation, clipping, compression, class weights and averages") {
  check_same(kMlp, ddp("", {"epochs=2", "accumulate=3", "data.limit=67"}));
  check_same(kMlp, ddp("", {"epochs=2", "clip_grad_norm=0.5", "log.loss=rank0"}));
  check_same(kMlp, ddp("compress: bf16", {"epochs=2"}));
  check_same(kMlp, ddp("", {"epochs=2", "ema=0.9"}));
  check_same(kMlp, ddp("", {"epochs=2", "data.limit=65", "log.loss=rank0",
                            "loss={cross_entropy: {weight: [1, 2, 1, 1, 3, 1, 1, 1, 0.5, 1]}}"}));
}

TEST_CASE("hosts of GPUs: mixed precision and synchronized batch norm") {
  check_same(kMlp, ddp("", {"epochs=2", "precision={bf16: {lists: cuda, emulate: true}}"}));
  // The scale is too large for the first steps, which are skipped.
  check_same(kMlp, ddp("", {"epochs=3",
                            "precision={fp16: {lists: cuda, emulate: true, "
                            "init_scale: 16777216}}"}));
  check_same(kImages, ddp("", {"sync_batch_norm=true", "data.limit=35", "accumulate=2"}),
             {{1, 1}, {1, 1, 1}});
}

TEST_CASE("hosts of GPUs: optimizer states that each GPU has a part of") {
  check_same(kMlp,
             ddp("shard: optimizer, bucket_cap_mb: 0.001", {"epochs=2", "clip_grad_norm=0.5"}),
             {{1, 1}, {2, 2}, {1, 1, 1}});
  check_same(kMlp, ddp("shard: optimizer", {"epochs=2", "ema=0.9"}));
}

TEST_CASE(
    "hosts of GPUs: a run continues on other numbers of hosts, from the first one's checkpoint") {
  const struct {
    Ranks before, after;
  } kChanges[] = {{{1, 1}, {2}}, {{2}, {1, 1}}, {{2, 2}, {1, 1, 1, 1}}, {{1, 2}, {2, 1}}};
  for (const auto& change : kChanges)
    for (const char* keys : {"", "shard: optimizer, bucket_cap_mb: 0.001"}) {
      CAPTURE(keys);
      CAPTURE(
          fmt::format("{} to {}", fmt::join(change.before, ", "), fmt::join(change.after, ", ")));
      const Words words = ddp(keys, {"ema=0.9"});
      int world = 0;
      for (const int n : change.before) world += n;
      const HostRun whole = run_on(kMlp, words, {.ranks = {world}});
      const Folder folder;
      const std::string run = folder.file("run");
      Words first = words;
      first.emplace_back("epochs=1");
      const HostRun begun = run_on(kMlp, first, {.ranks = change.before, .folder = run});
      CHECK(begun.errors == std::vector<std::string>(change.before.size()));
      same_run(whole, run_on(kMlp, words, {.ranks = change.after, .resume = run}));
    }
}

// The first worker asks for them by its clock, and all learn it from the sum of the losses.
TEST_CASE("hosts of GPUs: checkpoints by time are written after the same step on all hosts") {
  const Words words = ddp("shard: optimizer", {"save={every_minutes: 0.0000001, keep: 100}",
                                               "data.batch_size=4", "graphs=false"});
  const Folder folder;
  const HostRun saved = run_on(kMlp, words, {.ranks = {1, 1}, .folder = folder.file("run")});
  same_run(run_on(kMlp, words, {.ranks = {2}}), saved);
  const auto all = checkpoints_in(checkpoint_folder(folder.file("run")));
  CHECK(all.size() > 3);  // there are three epochs
  for (const auto& one : all)
    same_run(saved, run_on(kMlp, words, {.ranks = {1, 1}, .resume = one.path}));
}

TEST_CASE("hosts of GPUs: a stop that the first host decides on ends all after the same step") {
  const Folder folder;
  for (const char* graphs : {"graphs=true", "graphs=false"}) {
    CAPTURE(graphs);
    const Words words = ddp("", {"minutes=0.0000001", "epochs=50", graphs});
    const HostRun stopped =
        run_on(kMlp, words, {.ranks = {1, 2}, .folder = folder.file(std::string("run") + graphs)});
    CHECK(stopped.errors == std::vector<std::string>(2));
    CHECK(stopped.outcomes[0].stopped_by == kTimeLimitReached);
    CHECK(stopped.outcomes[1].stopped_by == kTimeLimitReached);
    CHECK(stopped.outcomes[0].steps == stopped.outcomes[1].steps);
    CHECK(stopped.outcomes[0].steps < 150);
  }
}

TEST_CASE("hosts of GPUs: all find the same value that is not finite") {
  const Words words = ddp("", {"optimizer={sgd: 1e30}", "epochs=1"});
  const HostRun one = run_on(kMlp, words, {.ranks = {2}}),
                several = run_on(kMlp, words, {.ranks = {1, 1}});
  REQUIRE(has(one.errors[0], "is the first that is not finite"));
  // Who hears first that the other host has ended says nothing.
  std::vector<std::string> said = several.errors;
  std::erase(said, "");
  REQUIRE(!said.empty());
  for (const std::string& error : said) CHECK(error == one.errors[0]);
}

TEST_CASE("hosts of GPUs: a GPU that fails ends the run on all hosts") {
  const HostRun failed = run_on(kMlp, ddp(""), {.ranks = {1, 1, 1}}, [](FakeApi::Settings& s) {
    if (s.index == 2) s.fail_call = 300;
  });
  CHECK_MESSAGE(has(failed.errors[2], "fake GPU"), failed.errors[2]);
  for (const Outcome& o : failed.outcomes) CHECK(o.steps == 0);
}

}  // namespace dpt
