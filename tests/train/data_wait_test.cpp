#include "train/data_wait.h"

#include <sstream>
#include <string>

#include <doctest/doctest.h>

#include "checkpoint/resumed_run.h"
#include "engine/wait_clock.h"
#include "train/metrics_file.h"
#include "train/progress.h"
#include "train/progress_plan.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

TEST_CASE("the share of time that steps wait, of records and epochs") {
  DataWait wait;
  wait.begin_epoch(10, 100);
  CHECK(wait.of_epoch(10, 100) == 0);
  CHECK(wait.since_record(11, 104) == 0.25);
  CHECK(wait.since_record(11, 106) == 0);
  CHECK(wait.of_epoch(11, 110) == 0.1);
  CHECK(wait.since_record(30, 110) == 1);  // an estimate from samples is at most all of the time
  wait.begin_epoch(30, 120);
  wait.leave_out(1, 8);  // an evaluation between steps
  CHECK(wait.since_record(32, 130) == 0.5);
  CHECK(wait.of_epoch(32, 130) == 0.5);
}

TEST_CASE("every step of a long one is measured, and one of 32 short ones") {
  WaitClock clock;
  int loads = 0;
  clock.begin_step(0);
  clock.record(WaitClock::data, [&] { ++loads; });
  const double first = clock.seconds(WaitClock::data);
  CHECK(first > 0);
  // Without any delay between them, steps are short: the next one is not measured.
  clock.begin_step(1);
  clock.begin_step(2);
  const double before = clock.seconds(WaitClock::data);
  clock.begin_step(3);
  clock.record(WaitClock::data, [&] { ++loads; });
  CHECK(clock.seconds(WaitClock::data) == before);
  clock.begin_step(1000);
  clock.record(WaitClock::data, [&] { ++loads; });
  CHECK(clock.seconds(WaitClock::data) > before);
  CHECK(loads == 3);
  CHECK(clock.seconds(WaitClock::barriers) == 0);
}

TEST_CASE("status lines and logs show waits of at least one percent") {
  SpeedEstimate speed(kPlan, 0);
  ProgressState state{.epoch = 1, .of_epoch = 100, .step = 100, .waited_s = 2};
  const ProgressFigures figures = speed.figures(state, 16);
  CHECK(figures.data_wait == 0.125);
  CHECK(status_line(kPlan, state, figures, 200).find("data 12 %") != std::string::npos);
  CHECK(progress_line(kPlan, state, figures).find(", data 12 %, ") != std::string::npos);
  state.waited_s = 0.1;
  SpeedEstimate quick(kPlan, 0);
  CHECK(status_line(kPlan, state, quick.figures(state, 16), 200).find("data") == std::string::npos);
}

TEST_CASE("records of steps and epochs have the share") {
  const Ran ran = run_spec(kFiveSteps, {"cores=1"});
  int records = 0;
  std::istringstream in(ran.metrics);
  for (std::string line; std::getline(in, line); ++records) {
    const double share = number_at(*record_of(line), "data_wait").value_or(-1);
    CHECK_MESSAGE(share >= 0, line);
    CHECK_MESSAGE(share <= 1, line);
  }
  CHECK(records == 18);
}

}  // namespace
}  // namespace dpt
