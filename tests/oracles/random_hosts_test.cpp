// The promise of several hosts, "the bits of one process", for specs, hosts and settings of the
// exchange that nobody chose. A failure prints the spec and its seed. DPT_RANDOM_SPECS=200 tries so
// many in place of 10, DPT_RANDOM_SEED=7 begins with that seed.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "oracles/random_spec.h"
#include "train/host_runs.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using Words = std::vector<std::string>;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// What a seed chooses besides the spec.
class Choices {
 public:
  explicit Choices(uint64_t seed) : random_(seed) {}

  // The keys of ddp on one host, and those that only several hosts have.
  std::string common() {
    return fmt::format("{}{}", one_of({"", "", "compress: fp16, ", "compress: bf16, "}),
                       one_of({"", "shard: optimizer, "}));
  }
  std::string buckets() {
    return one_of({"", "bucket_cap_mb: 0.001", "bucket_cap_mb: 0.004", "bucket_cap_mb: 0.03"});
  }
  // From one to eight ranks for each host, seldom many, for the sake of time.
  std::vector<int> ranks(int hosts) {
    std::vector<int> out;
    for (int h = 0; h < hosts; ++h) out.push_back(below(4) == 0 ? 1 + below(8) : 1 + below(2));
    return out;
  }
  uint64_t reorder() { return static_cast<uint64_t>(below(3)); }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  std::string one_of(const Words& words) {
    return words[static_cast<size_t>(below(static_cast<int>(words.size())))];
  }

  std::mt19937_64 random_;
};

void check_same(const HostRun& one, const HostRun& several) {
  for (const std::string& e : several.errors) CHECK(e == one.errors[0]);
  if (!one.errors[0].empty()) return;
  CHECK(several.weights[0] == one.weights[0]);
  for (size_t h = 1; h < several.weights.size(); ++h)
    CHECK(std::equal(several.weights[h].begin(), several.weights[h].end(), one.weights[0].begin()));
  for (const Evaluation& e : several.evaluations) {
    CHECK(e.loss == one.evaluations[0].loss);
    CHECK(e.accuracy == one.evaluations[0].accuracy);
  }
  for (const Outcome& o : several.outcomes) CHECK(o.steps == one.outcomes[0].steps);
}

struct Counts {
  int ran = 0, refused = 0, in_backward = 0;
};

void check_hosts(const std::string& yaml, uint64_t seed, Counts& counts) {
  Choices choices(seed);
  const Words all = {"reproducible={shards: 8, gradients: stored}", "cores=1", "steps=5"};
  const std::string common = choices.common();
  const auto with = [&](const std::string& keys) {
    Words out = all;
    out.push_back(fmt::format("parallel={{ddp: {{{}}}}}", keys));
    return out;
  };
  const HostRun one = run_on_hosts(yaml, {.ranks = {1}, .may_refuse = true}, with(common));
  if (!one.refused.empty()) {
    CHECK_MESSAGE(one.refused.find("no variance for batch norm") != std::string::npos, one.refused);
    ++counts.refused;
    return;
  }
  for (const int hosts : {1, 2, 3, 5, 8}) {
    const std::vector<int> ranks = choices.ranks(hosts);
    const std::string keys = hosts > 1 ? common + choices.buckets() : common;
    CAPTURE(fmt::format("ranks of hosts: {}; {}", fmt::join(ranks, ", "), keys));
    const HostRun several = run_on_hosts(
        yaml, {.ranks = ranks, .reorder = choices.reorder(), .may_refuse = true}, with(keys));
    if (!several.refused.empty()) {
      const bool expected =
          several.refused.find("fewer samples than there are shards") != std::string::npos ||
          several.refused.find("'muon' trains on one machine only") != std::string::npos;
      CHECK_MESSAGE(expected, several.refused);
      ++counts.refused;
      return;
    }
    check_same(one, several);
    ++counts.ran;
    counts.in_backward += several.sent_in_backward > 0 ? 1 : 0;
  }
}

TEST_CASE("random specs: the same bits on several hosts, with any number of ranks") {
  const uint64_t count = from_environment("DPT_RANDOM_SPECS", kSanitized ? 4 : 10);
  const uint64_t first = from_environment("DPT_RANDOM_SEED", 1);
  Counts counts;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::string yaml = random_spec(seed);
    INFO("DPT_RANDOM_SEED=" << seed << "\n" << yaml);
    check_hosts(yaml, seed, counts);
  }
  INFO(counts.refused << " refused, " << counts.in_backward << " sent during the backward pass");
  CHECK(counts.ran > counts.refused);
}

}  // namespace
}  // namespace dpt
