#include "report/rounds.h"

#include <map>
#include <string>

#include <doctest/doctest.h>

namespace dpt {
namespace {

std::vector<BenchRow> two_rows() { return {{.mode = "single"}, {.mode = "dp"}}; }

}  // namespace

TEST_CASE("rows take turns within a round, and medians are taken over the rounds") {
  std::string order;
  std::map<std::string, int> runs;
  // A step of single takes 10 ms and 4 samples; dp's third round is disturbed.
  const Measure fake = [&](const BenchRow& row, const RunSteps& steps) {
    order += row.mode[0];
    const int run = runs[row.mode]++;
    const double ms = row.mode == "single" ? 10 : run == 3 ? 500 : 5 + run;
    const auto n = static_cast<double>(steps.timed.count());
    return Reading{.seconds = n * ms / 1000,
                   .samples = 4 * steps.timed.count(),
                   .spent = {.compute = 3, .communication = 0.5, .waiting = 0.5, .slowest = 2},
                   .peak_bytes = 100.0 + run,
                   .facts = {.workers = 2},
                   .data = "made up"};
  };
  std::vector<int> rounds;
  const auto rows = two_rows();
  const std::vector<RowResult> out =
      take_turns(rows, {.rounds = 3, .seconds = 0.1}, fake,
                 {.begins = [&](int round, const BenchRow&) { rounds.push_back(round); }});
  CHECK(order == "sddsdsdsd");  // dp's first steps were too short to tell: seen twice
  CHECK(rounds == std::vector{0, 0, 1, 1, 2, 2, 3, 3});
  REQUIRE(out.size() == 2);
  CHECK(out[0].ms_per_sample == doctest::Approx(2.5));
  CHECK(out[1].ms_per_sample == doctest::Approx(9.0 / 4));  // of 7, 500, 9
  CHECK(out[1].fastest == doctest::Approx(7.0 / 4));
  CHECK(out[1].slowest == doctest::Approx(125));
  CHECK(out[1].lower == doctest::Approx(7.0 / 4));  // of three rounds all count
  CHECK(out[1].upper == doctest::Approx(125));
  CHECK(out[1].spent.compute == doctest::Approx(9));
  CHECK(out[1].share(&WorkerSeconds::waiting) == doctest::Approx(0.125));
  CHECK(out[1].peak_bytes == 104);
  CHECK(out[1].rounds == 3);
  CHECK(out[1].data == "made up");
}

TEST_CASE("of an even number of rounds the median is the mean of the middle two") {
  int run = 0;
  const Measure fake = [&](const BenchRow&, const RunSteps& steps) {
    const double seconds[] = {1, 4, 1, 2, 100};
    return Reading{.seconds = seconds[run++] * static_cast<double>(steps.timed.count()),
                   .samples = 1000 * steps.timed.count()};
  };
  const std::vector<BenchRow> rows = {{.mode = "single"}};
  CHECK(take_turns(rows, {.rounds = 4, .seconds = 1}, fake, {})[0].ms_per_sample ==
        doctest::Approx(3));
}

TEST_CASE("quartiles leave out the fastest and the slowest of five rounds") {
  int run = 0;
  const Measure fake = [&](const BenchRow&, const RunSteps& steps) {
    const double seconds[] = {1, 4, 1, 2, 100, 3};  // the first is the warm-up
    return Reading{.seconds = seconds[run++] * static_cast<double>(steps.timed.count()),
                   .samples = 1000 * steps.timed.count(),
                   .spent = {.compute = 1, .waiting = run == 5 ? 99.0 : 1.0}};
  };
  const std::vector<BenchRow> rows = {{.mode = "single"}};
  const auto out = take_turns(rows, {.rounds = 5, .seconds = 1}, fake, {});
  CHECK(out[0].spent.compute == 3);
  CHECK(out[0].spent.waiting == 3);  // the slowest round's 99 s do not count
  CHECK(out[0].lower == doctest::Approx(2));
  CHECK(out[0].upper == doctest::Approx(4));
}

TEST_CASE("a row that is refused is left out of the rounds and the others go on") {
  std::string order;
  const Measure fake = [&](const BenchRow& row, const RunSteps& steps) -> Reading {
    order += row.mode[0];
    if (row.mode == "dp") throw Refused(Fault::memory, "too large");
    return {.seconds = 1.0 * static_cast<double>(steps.timed.count()), .samples = 1};
  };
  const auto out = take_turns(two_rows(), {.rounds = 2, .seconds = 1}, fake, {});
  CHECK(order == "sdss");
  CHECK(out[0].refused.empty());
  CHECK(out[1].refused == "too large");
  CHECK(out[1].refused_code == 5);
}

TEST_CASE("a measurement that is stopped keeps the rows that were measured") {
  int runs = 0;
  const Measure fake = [&](const BenchRow&, const RunSteps& steps) -> Reading {
    if (++runs == 6) throw Error(Fault::rank, "ended with code 130");  // as Ctrl-C ends a process
    return {.seconds = 1.0 * static_cast<double>(steps.timed.count()),
            .samples = steps.timed.count()};
  };
  std::string lines;
  const TurnsObserver observer{
      .measured = [&](int round, const BenchRow& row,
                      const Reading&) { lines += row.mode + std::to_string(round) + " "; },
      .stops = [&] { return runs >= 6; }};
  auto out = take_turns(two_rows(), {.rounds = 5, .seconds = 1}, fake, observer);
  CHECK(lines == "single1 dp1 single2 ");
  REQUIRE(out.size() == 2);
  CHECK(out[0].rounds == 2);
  CHECK(out[1].rounds == 1);
  runs = 2;  // the second run of single is the last one
  lines.clear();
  out = take_turns(two_rows(), {.rounds = 5, .seconds = 1}, fake,
                   {.measured = observer.measured, .stops = [&] { return runs >= 5; }});
  REQUIRE(out.size() == 1);
  CHECK(out[0].row.mode == "single");
  runs = 5;
  CHECK_THROWS_AS(take_turns(two_rows(), {.rounds = 1, .seconds = 1}, fake, {}), Error);
}

TEST_CASE("steps fill the time that was asked for, with a quarter more to warm up") {
  const RunSteps longer = steps_for(0.010, 1);  // marked while they are timed
  CHECK(longer.timed.begin == 26);
  CHECK(longer.timed.count() == 100);
  CHECK(longer.marked.begin == longer.timed.begin);
  CHECK(longer.marked.end == longer.timed.end);
  const RunSteps shorter = steps_for(1e-6, 0.1);  // reading the clock would show
  CHECK(shorter.timed.count() == 100000);
  CHECK(shorter.marked.begin == shorter.timed.end);
  CHECK(shorter.marked.count() == 25001);
  CHECK(shorter.all() == shorter.marked.end);
  CHECK(steps_for(30, 1).timed.count() == 1);
  CHECK(steps_for(30, 1).timed.begin == 1);
}

TEST_CASE("steps that end together are timed in whole launches, two at least") {
  const RunSteps tiny = steps_for(0.5, 0.01, 32);
  CHECK(tiny.timed.begin == 32);
  CHECK(tiny.timed.end == 96);
  const RunSteps more = steps_for(1e-4, 1, 32);
  CHECK(more.timed.begin == 2528);
  CHECK(more.timed.count() == 10016);
  CHECK(more.marked.begin == more.timed.end);
  CHECK(more.marked.count() == 2528);
  // Four end at once, 10 ms each: what is timed of one launch alone takes no time.
  std::vector<PlanStepClock::Steps> timed;
  const Measure fake = [&](const BenchRow&, const RunSteps& steps) {
    timed.push_back(steps.timed);
    const int64_t launches = steps.timed.end / 4 - steps.timed.begin / 4;
    return Reading{.seconds = 0.040 * static_cast<double>(launches),
                   .samples = steps.timed.count(),
                   .facts = {.together = 4}};
  };
  const std::vector<BenchRow> rows = {{.mode = "single"}};
  const auto out = take_turns(rows, {.rounds = 1, .seconds = 0.01}, fake, {});
  CHECK(out[0].ms_per_sample == doctest::Approx(10));
  REQUIRE(timed.size() == 3);
  CHECK(timed[1].begin == 4);
  CHECK(timed[1].count() == 8);
}

TEST_CASE("a stage clock counts samples of timed steps and time of marked ones") {
  PlanStepClock clock({1, 3}, {3, 4});
  const auto step = [&](int64_t samples) {
    clock.mark(PlanStepClock::compute);
    clock.mark(PlanStepClock::waiting);
    clock.step_ends(samples);
  };
  step(1);
  CHECK(clock.timed_samples() == 0);
  step(10);
  step(100);
  CHECK(clock.timed_samples() == 110);
  CHECK(clock.timed_seconds() >= 0);
  CHECK(clock.seconds(PlanStepClock::compute) == 0);
  const double before = now_s();
  while (now_s() - before < 1e-3) {
  }
  step(1000);
  CHECK(clock.timed_samples() == 110);
  CHECK(clock.seconds(PlanStepClock::compute) >= 1e-3);
  CHECK(clock.seconds(PlanStepClock::update) == 0);
  CHECK(clock.on_core() > 0);
  CHECK(clock.on_core() < 10);
  const double marked = clock.seconds(PlanStepClock::compute);
  step(1);
  CHECK(clock.seconds(PlanStepClock::compute) == marked);
}

}  // namespace dpt
