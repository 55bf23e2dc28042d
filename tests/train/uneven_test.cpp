// Sets, worlds and batches that do not divide by one another: every sample counts once, in training
// and evaluation. Trains one in five of the 408 combinations, one in 13 under AddressSanitizer,
// where starting a process takes long; DPT_ALL_UNEVEN=1 trains all.
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/folder.h"
#include "session/batch_partitioner.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

template <class F>
void for_all_sizes(F&& f) {
  for (int64_t samples = 1; samples <= 17; ++samples)
    for (int world = 1; world <= 4; ++world)
      for (int64_t batch = 1; batch <= 6; ++batch) f(samples, world, batch);
}

// How often each sample is used in an epoch; ranks take their share of the set's random order.
std::vector<int> uses(const SampleAssignment& assignment, int64_t batch, const Topology& topology) {
  const BatchPartitioner partitioner({.assignment = assignment, .batch = batch}, topology, 1);
  std::vector<int> out(static_cast<size_t>(assignment.samples));
  StepRows rows;
  for (int64_t step = 0; step < partitioner.steps(); ++step) {
    partitioner.step(step, rows);
    for (int s = 0; s < topology.shards; ++s) {
      const int rank = partitioner.per_replica_sampling() ? topology.rank_of(topology.owner(s)) : 0;
      const Order order = distributed_order(assignment, rank, true, 3, 5);
      const Rows& mine = rows.micro[0][static_cast<size_t>(s)].rows;
      for (int64_t i = mine.begin; i < mine.end; ++i) ++out[order.indices[static_cast<size_t>(i)]];
    }
  }
  return out;
}

TEST_CASE("every sample of the set is taken once, for all small sizes, worlds and batches") {
  for_all_sizes([](int64_t n, int world, int64_t batch) {
    const std::vector<int> once(static_cast<size_t>(n), 1);
    const SampleAssignment whole{.samples = n}, assigned{.samples = n, .ranks = world};
    CHECK(uses(assigned, batch, {.ranks = world, .shards = world}) == once);
    CHECK(uses(whole, batch * world, {.devices_per_rank = world, .shards = world}) == once);
    // The test set, and runs that are reproducible.
    CHECK(uses(whole, batch, {.ranks = world, .shards = world, .reproducible = true}) == once);
  });
}

std::string last_number(const std::string& metrics, const std::string& key) {
  const size_t at = metrics.rfind("\"" + key + "\": ");
  REQUIRE(at != std::string::npos);
  return metrics.substr(at + key.size() + 4, metrics.find_first_of(",}", at) - at - key.size() - 4);
}

// Up to 17 positive floats, summed in any order and divided: at most 18 roundings of 6e-8, and the
// ninth digit of what is printed.
void check_close(const std::string& got, const std::string& expected) {
  const double a = std::stod(got), b = std::stod(expected);
  CHECK_MESSAGE(std::abs(a - b) <= 1.2e-6 * std::abs(b), got << " is not " << expected);
}

// Classes, so that the mean is over weights that depend on the samples where classes have weights.
std::string table(int64_t samples) {
  std::string out;
  for (int64_t i = 0; i < samples; ++i)
    out += fmt::format("{},{},{},{}\n", i % 5 - 2, i * i % 7, 0.25 * static_cast<double>(i), i % 3);
  return out;
}

void check_training(const Folder& folder, int64_t samples, int world, int64_t batch) {
  const std::string path = folder.file(fmt::format("{}.csv", samples));
  const std::string yaml = fmt::format(
      "data: {{dataset: {{csv: {{path: {0}, test_path: {0}, classes: 3}}}}, batch_size: {1}}}\n"
      "model: [{{linear: 5}}, tanh, {{linear: 3}}]\nloss: {{cross_entropy: {{{2}}}}}\n"
      "optimizer: {{sgd: 0}}\ncores: 1\nepochs: 2\nevaluate: {{batch_size: {3}}}\n",
      path, world * batch, (samples + batch) % 2 == 0 ? "weight: [1, 2.5, 0.3]" : "", batch);
  const auto train = [&](const std::vector<std::string>& how) {
    Ran ran = run_spec(yaml, how);
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    return ran;
  };
  const std::string dp = "parallel=dp", ddp = "parallel=ddp", n = fmt::format("devices={}", world);
  // Weights that stay as they are: an epoch's loss is the set's, whatever the order.
  const Ran whole = train({"data.batch_size=17", "evaluate={batch_size: 17}"});
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{}, {dp, n}, {ddp, n}}) {
    const Ran ran = train(how);
    check_close(last_number(ran.metrics, "loss"), last_number(whole.metrics, "loss"));
    check_close(last_number(ran.metrics, "test.loss"), last_number(whole.metrics, "loss"));
    CHECK(last_number(ran.metrics, "test.accuracy") == last_number(whole.metrics, "test.accuracy"));
  }
  const std::string rate = "optimizer.lr=0.1", fixed = "reproducible={shards: 4}";
  const Ran one = train({rate, fixed});
  for (const std::string& mode : {dp, ddp}) {
    const Ran ran = train({rate, fixed, mode, n});
    for (const char* key : {"loss", "test.loss", "test.accuracy"})
      CHECK(last_number(ran.metrics, key) == last_number(one.metrics, key));
    CHECK(data_of(ran.weights) == data_of(one.weights));
  }
}

TEST_CASE("an epoch's loss and an evaluation are the single process's, however uneven") {
  const Folder folder;
  for (int64_t n = 1; n <= 17; ++n) folder.write(fmt::format("{}.csv", n), table(n));
  // No divisor of 17, 4 or 6.
  const int every = std::getenv("DPT_ALL_UNEVEN") ? 1 : kSanitized ? 29 : 5;
  int number = 0;
  for_all_sizes([&](int64_t samples, int world, int64_t batch) {
    if (number++ % every != 0) return;
    CAPTURE(samples);
    CAPTURE(world);
    CAPTURE(batch);
    check_training(folder, samples, world, batch);
  });
}

}  // namespace
}  // namespace dpt
