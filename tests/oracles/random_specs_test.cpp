// The promise of same_bits_test.cpp, for specs that nobody chose. A failure prints the spec and its
// seed. DPT_RANDOM_SPECS=200 tries so many in place of 9, DPT_RANDOM_SEED=7 begins with that seed:
//   DPT_RANDOM_SPECS=1 DPT_RANDOM_SEED=7 tests/unit -tc='random specs*'
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "oracles/random_spec.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

using Overrides = std::vector<std::string>;

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

const std::vector<Overrides> kEveryWay = {
    {"cores=2"},
    {"parallel=dp", "devices=2", "cores=1"},
    {"parallel={dp: {loss: distributed}}", "devices=2", "cores=2"},
    {"parallel={dp: {output_device: 1}}", "devices=4", "cores=1"},
    {"parallel=ddp", "devices=1", "cores=2"},
    {"parallel=ddp", "devices=2", "cores=1"},
    {"parallel=ddp", "devices=4", "cores=1"},
    {"parallel=ddp", "devices=8", "cores=1"},
};

void check_same(const Ran& a, const Ran& b) {
  CHECK_MESSAGE(a.code == b.code, b.err);
  CHECK(a.step_losses() == b.step_losses());
  CHECK(a.losses() == b.losses());
  CHECK(a.weights.empty() == b.weights.empty());
  if (!a.weights.empty() && !b.weights.empty()) CHECK(data_of(a.weights) == data_of(b.weights));
}

// How the run ended.
int check_all(const std::string& yaml) {
  const Overrides fixed = {"reproducible={shards: 8}"};
  const auto with = [](Overrides how, const Overrides& more) {
    how.insert(how.end(), more.begin(), more.end());
    return how;
  };
  const Ran one = run_spec(yaml, with(fixed, {"cores=1"}));
  for (const Overrides& how : kEveryWay) {
    CAPTURE(how[0]);
    CAPTURE(how.back());
    if (how.size() > 2) CAPTURE(how[1]);
    check_same(one, run_spec(yaml, with(fixed, how)));
  }
  for (const char* workers : {"2", "3"}) {  // without `reproducible`
    CAPTURE(workers);
    const Ran single = run_spec(yaml, {std::string("cores=") + workers});
    check_same(single,
               run_spec(yaml, {"parallel=dp", "cores=1", std::string("devices=") + workers}));
  }
  // A batch that leaves batch norm a single sample is refused in every mode.
  const bool refused =
      one.code == 2 && one.err.find("no variance for batch norm") != std::string::npos;
  CHECK_MESSAGE((one.code == 0 || one.code == 7 || refused), one.err);
  if (one.code == 0) CHECK(one.step_losses().size() == 50);
  return one.code;
}

// In the modes whose gradients are fused into the update, and in those that store them.
TEST_CASE("random specs: recomputation changes no bit, in any mode") {
  const uint64_t count = from_environment("DPT_RANDOM_SPECS", kSanitized ? 3 : 8);
  const uint64_t first = from_environment("DPT_RANDOM_SEED", 1);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const RandomPipeline stages = random_pipeline(seed);
    const std::string text = random_spec(seed);
    INFO("DPT_RANDOM_SEED=" << seed << "\n" << text << stages.recomputed);
    const auto check = [&](const Overrides& kept, const Overrides& again) {
      CAPTURE(again[0]);
      const auto few = [](Overrides how) {
        how.insert(how.end(), {"steps=12", "cores=1"});
        return how;
      };
      check_same(run_spec(random_spec(seed, false), few(kept)), run_spec(text, few(again)));
    };
    for (const Overrides& how :
         std::vector<Overrides>{{"parallel=single"},
                                {"parallel=single", "reproducible={shards: 3}"},
                                {"parallel=dp", "devices=2"},
                                {"parallel=ddp", "devices=2"}})
      if (kCanFork || how[0] != "parallel=ddp") check(how, how);
    const std::string begin = "parallel={pipeline: {";
    check({begin + stages.kept + "}}"}, {begin + stages.recomputed + "}}"});
  }
}

TEST_CASE("random specs: the same bits in every mode, with any number of ranks and workers") {
  const uint64_t count = from_environment("DPT_RANDOM_SPECS", 9);
  const uint64_t first = from_environment("DPT_RANDOM_SEED", 1);
  uint64_t whole = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::string yaml = random_spec(seed);
    INFO("DPT_RANDOM_SEED=" << seed << "\n" << yaml);
    if (check_all(yaml) == 0) ++whole;
  }
  CHECK(4 * whole >= 3 * (count - 1));
}

}  // namespace
}  // namespace dpt
