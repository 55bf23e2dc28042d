#include "report/batch_choice.h"

#include <map>

#include <doctest/doctest.h>

namespace dpt {
namespace {

using Sizes = std::vector<int64_t>;

TEST_CASE("candidates are doublings that leave 16 steps per epoch") {
  CHECK(batch_candidates({.samples = 60000}).back() == 2048);
  CHECK(batch_candidates({.samples = 1024}) == Sizes{16, 32, 64});
  CHECK(batch_candidates({.samples = 1023}) == Sizes{16, 32});
  CHECK(batch_candidates({.samples = 1000, .unit = 3}) == Sizes{18, 36});  // three replicas
  CHECK(batch_candidates({.samples = 10000, .unit = 24}) == Sizes{24, 48, 96, 192, 384});
}

TEST_CASE("a small data set has one candidate, a multiple of the replicas") {
  CHECK(batch_candidates({.samples = 100}) == Sizes{16});
  CHECK(batch_candidates({.samples = 5}) == Sizes{5});
  CHECK(batch_candidates({.samples = 5, .unit = 2}) == Sizes{4});
  CHECK(batch_candidates({.samples = 1, .unit = 2}) == Sizes{2});
}

// Measures a table of speeds; each measurement takes a second.
std::vector<BatchTrial> measured(const std::map<int64_t, double>& speeds, double seconds = 100,
                                 bool largest = false) {
  Sizes candidates;
  for (const auto& [batch, speed] : speeds) candidates.push_back(batch);
  double clock = 0;
  return measure_batches(
      candidates, largest,
      [&](int64_t batch) {
        clock += 1;
        const double speed = speeds.at(batch);
        return BatchTrial{
            .batch = batch, .samples_per_second = speed, .refused = speed < 0 ? "too large" : ""};
      },
      seconds, [&] { return clock; });
}
int64_t chosen(const std::map<int64_t, double>& speeds, bool largest = false) {
  return choose_batch(measured(speeds, 100, largest), largest)->batch;
}

TEST_CASE("measuring ends after two sizes without gain or its time") {
  const std::map<int64_t, double> flat = {{16, 100}, {32, 200}, {64, 210}, {128, 205}, {256, 900}};
  CHECK(measured(flat).size() == 4);
  CHECK(measured(flat, 100, true).size() == 5);
  // One that cannot run, such as with a last batch of one sample, need not be too large.
  CHECK(measured({{16, 100}, {32, -1}, {64, 400}, {128, -1}, {256, -1}, {512, 1}}).size() == 5);
  CHECK(measured({{16, -1}, {32, -1}, {64, -1}, {128, 400}}).size() == 4);
  CHECK(measured({{16, 100}, {32, 200}, {64, 400}, {128, 800}}, 1.5).size() == 2);
  CHECK(measured({{16, 100}, {32, 200}}, 0).size() == 1);
}

TEST_CASE("the smallest batch within a tenth of the fastest, or the largest that ran") {
  CHECK(chosen({{16, 100}, {32, 180}, {64, 195}, {128, 199}}) == 32);
  CHECK(chosen({{16, 100}, {32, 179}, {64, 195}, {128, 199}}) == 64);
  CHECK(chosen({{16, 100}, {32, 90}, {64, 80}}) == 16);
  CHECK(chosen({{16, 100}, {32, 200}, {64, -1}}) == 32);
  CHECK(chosen({{16, 100}, {32, -1}, {64, 400}}) == 64);
  CHECK(chosen({{16, 100}, {32, 101}, {64, 101}, {128, 101}, {256, -1}}, true) == 128);
  CHECK(!choose_batch(measured({{16, -1}}), false));
}

}  // namespace
}  // namespace dpt
