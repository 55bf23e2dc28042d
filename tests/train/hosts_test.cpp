// The promise of several hosts: the bits of one process, however shards are split over hosts, ranks
// and workers.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/folder.h"
#include "train/host_runs.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

// 83 samples in batches of 32: the last batch of an epoch has 19, and 19 test samples.
std::string spec(const std::string& more = "") {
  return R"(
data:
  dataset: {synthetic_images: {samples: 83, test_samples: 19, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 32
model:
  - flatten
  - linear: 19
  - layer_norm
  - gelu
  - dropout: 0.3
  - linear: 10
loss: cross_entropy
optimizer: {adam: 0.01}
epochs: 2
cores: 1
parallel: ddp
evaluate: {metrics: [accuracy, top5, f1, confusion_matrix]}
reproducible: {shards: 8, gradients: stored}
)" + more;
}

using Ranks = std::vector<int>;
const std::vector<Ranks> kHosts = {{1, 1},          {2, 1},          {1, 1, 1},
                                   {3, 1, 4},       {1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1},
                                   {2, 2, 1, 4, 2}, {4, 4}};

// The hosts' weights are those of the first run, and its running statistics are the first host's.
void same_run(const HostRun& one, const HostRun& several) {
  for (const std::string& e : several.errors) CHECK(e == "");
  CHECK(several.weights[0] == one.weights[0]);
  const std::vector<float>& first = several.weights[0];
  for (size_t h = 1; h < several.weights.size(); ++h) {
    const std::vector<float>& own = several.weights[h];
    CHECK(std::equal(own.begin(), own.end(), first.begin()));
  }
  for (const Evaluation& e : several.evaluations) {
    CHECK(e.loss == one.evaluations[0].loss);
    CHECK(e.accuracy == one.evaluations[0].accuracy);
    CHECK(e.confusion_matrix == one.evaluations[0].confusion_matrix);
    for (const NamedValue& metric : one.evaluations[0].metrics)
      CHECK(e.find(metric.name) == metric.value);
  }
  for (const Outcome& o : several.outcomes) CHECK(o.steps == one.outcomes[0].steps);
}

void check_same(const std::string& text, const std::vector<std::string>& overrides = {},
                const std::vector<Ranks>& hosts = {{1, 1}, {3, 1, 4}, {1, 1, 1, 1, 1}}) {
  const HostRun one = run_on_hosts(text, {.ranks = {1}}, overrides);
  CHECK(one.errors[0] == "");
  for (const Ranks& ranks : hosts) {
    CAPTURE(fmt::format("ranks of hosts: {}", fmt::join(ranks, ", ")));
    same_run(one, run_on_hosts(text, {.ranks = ranks}, overrides));
  }
}

}  // namespace

TEST_CASE("hosts: 1, 2, 3, 5 and 8 hosts end in the same bits, with any number of ranks") {
  check_same(spec(), {}, kHosts);
  check_same(spec(), {"cores=2"}, {{1, 1, 1}, {2, 1}});
}

// 4096 bytes a bucket, or with norm partials, which are of 4096 elements, 32 KiB for two hosts.
TEST_CASE("hosts: buckets are exchanged while others are summed and updated") {
  const std::string model = "model=[flatten, {linear: 300}, gelu, {linear: 10}]";
  for (const char* more : {"", "clip_grad_norm: 0.05\n"})
    for (const char* compress : {"", "compress: bf16"}) {
      CAPTURE(more);
      CAPTURE(compress);
      const std::string one_bucket = fmt::format("parallel={{ddp: {{{}}}}}", compress);
      const HostRun one = run_on_hosts(spec(more), {.ranks = {1}}, {model, one_bucket});
      for (const Ranks& ranks : std::vector<Ranks>{{1, 1}, {2, 1, 3}})
        same_run(one, run_on_hosts(spec(more), {.ranks = ranks},
                                   {model, fmt::format("parallel={{ddp: {{bucket_cap_mb: "
                                                       "0.00390625{}{}}}}}",
                                                       *compress ? ", " : "", compress)}));
    }
}

TEST_CASE("hosts: messages may arrive in another order") {
  const HostRun one = run_on_hosts(spec(), {.ranks = {1}});
  same_run(one, run_on_hosts(spec(), {.ranks = {1, 2, 1}, .reorder = 7}));
}

TEST_CASE("hosts: the key `gradients: stored` is what several hosts do anyway") {
  const HostRun one = run_on_hosts(spec(), {.ranks = {1}});
  same_run(one, run_on_hosts(spec(), {.ranks = {1, 2}}, {"reproducible=8"}));
}

TEST_CASE("hosts: gradient clipping and accumulation have the same bits") {
  check_same(spec("clip_grad_norm: 0.05\n"));
  check_same(spec("clip_grad_norm: {max_norm: 0.01, norm_type: .inf}\naccumulate: 3\n"));
  check_same(spec("accumulate: 2\n"));
}

TEST_CASE("hosts: compressed gradients have the same bits") {
  for (const char* half : {"fp16", "bf16"}) {
    const std::string parallel = fmt::format("parallel={{ddp: {{compress: {}}}}}", half);
    check_same(spec(), {parallel}, {{1, 1}, {1, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1}});
    check_same(spec("clip_grad_norm: 0.05\n"), {parallel}, {{1, 1}, {3, 1, 4}});
  }
}

TEST_CASE("hosts: divisors that depend on targets, mixed precision and averages") {
  check_same(spec("ema: 0.9\n"), {"loss={cross_entropy: {ignore_index: 3}}"});
  check_same(spec("precision: {bf16: {emulate: true}}\n"));
  check_same(
      spec("precision: {fp16: {emulate: true, init_scale: 1073741824, "
           "growth_interval: 5}}\n"));
}

TEST_CASE("hosts: more ranks than shards leave hosts without shards") {
  check_same(spec(), {"reproducible.shards=3"}, {{1, 1, 1, 1, 1}, {2, 3}, {5, 1}});
}

TEST_CASE("hosts: sharded states are sharded anyway") {
  check_same(spec(), {"parallel={ddp: {shard: optimizer}}"}, {{1, 1}, {1, 2}});
}

TEST_CASE("hosts: batch norm sums over the shards of all hosts") {
  const std::string lenet = R"(
data:
  dataset: {synthetic_images: {samples: 83, test_samples: 19, shape: [1, 8, 8]}}
  transforms: [to_tensor]
  batch_size: 32
model:
  - conv2d: {out_channels: 4, kernel_size: 3, padding: 1}
  - batch_norm2d
  - relu
  - max_pool2d: 2
  - conv2d: {out_channels: 6, kernel_size: 3}
  - batch_norm2d
  - relu
  - flatten
  - linear: 10
loss: cross_entropy
optimizer: {sgd: {lr: 0.1, momentum: 0.9}}
epochs: 2
cores: 1
parallel: ddp
sync_batch_norm: true
evaluate: true
reproducible: {shards: 8, gradients: stored}
)";
  check_same(lenet, {}, kHosts);
  check_same(lenet, {"accumulate=2", "clip_grad_norm=0.5"});
}

TEST_CASE("hosts: without reproducible, hosts have the bits of one host with their ranks") {
  const HostRun one =
      run_on_hosts(spec(), {.ranks = {4}}, {"reproducible=null", "clip_grad_norm=1"});
  same_run(one, run_on_hosts(spec(), {.ranks = {1, 3}}, {"reproducible=null", "clip_grad_norm=1"}));
}

TEST_CASE("hosts: a loss that is not finite ends all hosts with the same reason") {
  const HostRun ran = run_on_hosts(spec(), {.ranks = {1, 2, 1}}, {"optimizer={sgd: 1e30}"});
  CHECK(ran.errors[0].starts_with("the loss is "));
  for (const std::string& e : ran.errors) CHECK(e == ran.errors[0]);
}

TEST_CASE("hosts: a run goes on from its checkpoint on another number of hosts") {
  for (const std::string& more : {std::string(), std::string("ema: 0.9\n")}) {
    const HostRun whole = run_on_hosts(spec(more), {.ranks = {1}}, {"epochs=4"});
    const Folder folder;
    std::vector<Ranks> hosts = {{1, 1, 1}, {2, 1}, {1}, {1, 1}};
    std::string resume;
    for (size_t i = 0; i < hosts.size(); ++i) {
      const std::string run = folder.file(fmt::format("run{}", i));
      const HostRun ran =
          run_on_hosts(spec(more), {.ranks = hosts[i], .folder = run, .resume = resume},
                       {fmt::format("epochs={}", i + 1)});
      for (const std::string& e : ran.errors) CHECK(e == "");
      resume = run;
      if (i + 1 == hosts.size()) same_run(whole, ran);
    }
  }
}

// Bytes that each host sends in a step: what two steps send more than one.
struct StepBytes {
  std::vector<double> sent;                // [hosts]
  std::vector<ExchangeBytes> of_layout{};  // [hosts]
  double gradients = 0;                    // of one host
};

StepBytes bytes_of_step(int hosts, int shards) {
  const auto run = [&](const char* steps) {
    return run_on_hosts(spec(), {.ranks = Ranks(static_cast<size_t>(hosts), 1)},
                        {"model=[flatten, {linear: 3000}, {linear: 10}]", "evaluate=false",
                         fmt::format("reproducible.shards={}", shards), steps});
  };
  const HostRun one = run("steps=1"), two = run("steps=2");
  StepBytes out{.sent = {}, .of_layout = two.of_step};
  out.gradients = 4.0 * static_cast<double>(two.weights[1].size());
  for (size_t h = 0; h < two.sent.size(); ++h)
    out.sent.push_back(static_cast<double>(two.sent[h] - one.sent[h]));
  return out;
}

// The rest are the results of the host's shards, and the stop word, for each other host.
TEST_CASE("hosts: with one part, a host sends 2 (N - 1) / N of its gradients' bytes") {
  for (const int hosts : {2, 3, 4, 8}) {
    CAPTURE(hosts);
    const int shards = hosts == 3 ? 6 : 8;
    const StepBytes bytes = bytes_of_step(hosts, shards);
    const double least = 2.0 * (hosts - 1) / hosts * bytes.gradients;
    for (size_t h = 0; h < bytes.sent.size(); ++h) {
      CAPTURE(bytes.sent[h] / least);
      CHECK(bytes.sent[h] <= 1.05 * least);
      const ExchangeBytes& of = bytes.of_layout[h];
      CHECK(bytes.sent[h] == static_cast<double>(of.gradients + of.weights) +
                                 (hosts - 1) * (16.0 + 16.0 * shards / hosts));
    }
  }
}

// Eight shards on three hosts: 0 to 2, 3 to 5, and 6 and 7. The first two are two subtrees each, so
// these hosts send twice the gradients: 3/2 of what one part takes, with the weights.
TEST_CASE("hosts: with two parts, a host sends its gradients twice") {
  const StepBytes bytes = bytes_of_step(3, 8);
  const double least = 2.0 * 2 / 3 * bytes.gradients;
  // 0.1 %: the results of three shards, and pieces that end at cache lines.
  const auto ratio = [&](size_t host) { return bytes.sent[host] / least; };
  CHECK(ratio(0) == doctest::Approx(1.5).epsilon(0.001));
  CHECK(ratio(1) == doctest::Approx(1.5).epsilon(0.001));
  CHECK(ratio(2) == doctest::Approx(1).epsilon(0.001));
}

// Buckets of 4 KiB, of which some are complete before the first layers' gradients are.
TEST_CASE("hosts: buckets that are sent during the backward pass have the same bits") {
  const std::vector<std::string> model = {
      "model=[flatten, {linear: 30}, gelu, {linear: 200}, gelu, {linear: 10}]"};
  const auto with = [&](const char* compress, std::vector<std::string> more) {
    more.insert(more.end(), model.begin(), model.end());
    more.push_back(fmt::format("parallel={{ddp: {{bucket_cap_mb: 0.00390625{}}}}}", compress));
    return more;
  };
  struct Case {
    const char *more, *compress, *cores;
  };
  for (const Case& c :
       {Case{"", "", "1"}, Case{"accumulate: 3\n", "", "1"}, Case{"", ", compress: bf16", "2"},
        Case{"accumulate: 2\n", ", compress: fp16", "1"}, Case{"ema: 0.9\n", "", "2"}}) {
    CAPTURE(c.more);
    CAPTURE(c.compress);
    const std::string plain =
        fmt::format("parallel={{ddp: {{{}}}}}", *c.compress ? c.compress + 2 : "");
    const HostRun one = run_on_hosts(spec(c.more), {.ranks = {1}}, {model[0], plain});
    for (const Ranks& ranks : std::vector<Ranks>{{1, 1}, {2, 1, 3}}) {
      const HostRun several = run_on_hosts(spec(c.more), {.ranks = ranks, .reorder = 3},
                                           with(c.compress, {std::string("cores=") + c.cores}));
      CHECK(several.sent_in_backward > 1);
      same_run(one, several);
    }
  }
}

// Norm partials are of 4096 elements, so these buckets have 32 KiB for two hosts.
TEST_CASE("hosts: clipping and loss scaling wait for buckets that are sent before") {
  const std::vector<std::string> model = {
      "model=[flatten, {linear: 200}, gelu, {linear: 200}, gelu, {linear: 10}]"};
  for (const char* more : {"clip_grad_norm: 0.05\n",
                           "precision: {fp16: {emulate: true, init_scale: "
                           "1073741824, growth_interval: 5}}\n"}) {
    const HostRun one = run_on_hosts(spec(more), {.ranks = {1}}, model);
    const HostRun two = run_on_hosts(spec(more), {.ranks = {2, 1}},
                                     {model[0], "parallel={ddp: {bucket_cap_mb: 0.001}}"});
    CHECK(two.sent_in_backward > 1);
    same_run(one, two);
  }
}

// Sums over the samples of a rank, at sync points between which buckets are complete.
TEST_CASE("hosts: batch norm of each rank, with buckets that are sent during the backward pass") {
  const std::vector<std::string> model = {
      "model=[flatten, {linear: 40}, batch_norm1d, gelu, {linear: 40}, batch_norm1d, gelu, "
      "{linear: 100}, gelu, {linear: 10}]",
      "cores=2", "data.batch_size=48"};
  for (const char* more : {"", "accumulate: 2\n"}) {
    CAPTURE(more);
    const HostRun one = run_on_hosts(spec(more), {.ranks = {4}}, model);
    std::vector<std::string> small = model;
    small.emplace_back("parallel={ddp: {bucket_cap_mb: 0.00390625}}");
    for (const Ranks& ranks : std::vector<Ranks>{{2, 2}, {1, 3}}) {
      const HostRun several = run_on_hosts(spec(more), {.ranks = ranks}, small);
      CHECK(several.sent_in_backward > 1);
      same_run(one, several);
    }
  }
}

TEST_CASE("hosts: replicas of a pipeline on several hosts have the bits of one process") {
  const auto pipeline = [](int replicas, const char* more = "") {
    return fmt::format("parallel={{pipeline: {{stages: 2, chunks: 3, data_parallel: {}{}}}}}",
                       replicas, more);
  };
  const HostRun one = run_on_hosts(spec(), {.ranks = {1}}, {pipeline(1)});
  same_run(one, run_on_hosts(spec(), {.ranks = {1}}, {"accumulate=3"}));
  for (const Ranks& ranks : std::vector<Ranks>{{1, 1}, {2, 1}, {1, 2, 2}}) {
    const int replicas = std::accumulate(ranks.begin(), ranks.end(), 0);
    CAPTURE(replicas);
    same_run(one, run_on_hosts(spec(), {.ranks = ranks}, {pipeline(replicas)}));
    same_run(one, run_on_hosts(spec(), {.ranks = ranks},
                               {pipeline(replicas, ", bucket_cap_mb: 0.002"), "cores=2"}));
  }
  const HostRun clipped =
      run_on_hosts(spec("clip_grad_norm: 0.05\n"), {.ranks = {1}}, {pipeline(1), "evaluate=false"});
  same_run(clipped, run_on_hosts(spec("clip_grad_norm: 0.05\n"), {.ranks = {1, 1}},
                                 {pipeline(2, ", schedule: gpipe, checkpoint: except_last"),
                                  "evaluate=false"}));
}

TEST_CASE("hosts: layers on several devices of each rank have the bits of one device") {
  const HostRun one =
      run_on_hosts(spec(), {.ranks = {1}}, {"model=[flatten, {linear: 19}, gelu, {linear: 10}]"});
  same_run(one, run_on_hosts(spec(), {.ranks = {1, 2}},
                             {"model=[flatten, {linear: 19}, gelu, {linear: 10, device: 1}]"}));
}

// Direct exchange works for any number of hosts; 65 of them also have three of the tree's levels
// with parts of unequal sizes.
TEST_CASE("hosts: more than 64 hosts") {
  const std::vector<std::string> small = {"model=[flatten, {linear: 10}]", "reproducible.shards=67",
                                          "data.batch_size=70", "steps=2"};
  const HostRun one = run_on_hosts(spec(), {.ranks = {1}}, small);
  same_run(one, run_on_hosts(spec(), {.ranks = Ranks(65, 1)}, small));
}

TEST_CASE("hosts: what a step exchanges is what is counted from its plan") {
  const auto run = [](const Ranks& ranks, std::vector<std::string> how, int steps) {
    how.insert(how.end(), {"evaluate=false", fmt::format("steps={}", steps)});
    return run_on_hosts(spec(), {.ranks = ranks}, how);
  };
  const std::vector<std::vector<std::string>> specs = {
      {},
      {"model=[flatten, {linear: 3000}, {linear: 10}]", "parallel={ddp: {bucket_cap_mb: 0.05}}"},
      {"clip_grad_norm=1", "model=[flatten, {linear: 400}, {linear: 10}]"},
      {"loss={cross_entropy: {ignore_index: 3}}"},
      {"parallel={ddp: {compress: fp16}}"}};
  for (const Ranks& ranks : {Ranks{1, 1}, Ranks{1, 1, 1, 1}, Ranks{2, 1, 1}})
    for (const auto& how : specs) {
      CAPTURE(ranks.size());
      CAPTURE(fmt::format("{}", fmt::join(how, " ")));
      const HostRun one = run(ranks, how, 1), two = run(ranks, how, 2);
      for (size_t h = 0; h < ranks.size(); ++h) {
        CAPTURE(h);
        CHECK(two.sent[h] - one.sent[h] == one.counted[h].sent);
        CHECK(two.received[h] - one.received[h] == one.counted[h].received);
        const uint64_t messages = two.messages[h] - one.messages[h];
        // If hosts differ, exchanges with more sends and those with more receives add up.
        CHECK(messages <= one.counted[h].messages);
        if (ranks[0] == 1) CHECK(messages == one.counted[h].messages);
      }
    }
}

}  // namespace dpt
