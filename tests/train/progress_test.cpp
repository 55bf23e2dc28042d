#include "train/progress.h"

#include <cmath>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/status_line.h"
#include "golden_text.h"
#include "train/progress_plan.h"

namespace dpt {
namespace {

// The 1000th step is the run's last; it lies in the middle of the second epoch.
constexpr ProgressPlan kBySteps{
    .epochs = 2, .steps_of_epoch = 600, .steps = 1000, .by_steps = true, .samples_of_step = 100};
constexpr ProgressState kBegun{.epoch = 1};
constexpr ProgressState kTraining{
    .epoch = 2, .of_epoch = 300, .step = 900, .loss = 0.43214, .lr = 0.001, .evaluated_s = 1};
constexpr ProgressState kEvaluating{.epoch = 2,
                                    .of_epoch = 600,
                                    .step = 1200,
                                    .batches = 25,
                                    .evaluating = 1,
                                    .loss = 0.43214,
                                    .lr = 0.001};
constexpr ProgressState kHuge{.epoch = 123456789,
                              .of_epoch = 123456789012,
                              .step = 123456789012,
                              .loss = -1e30,
                              .lr = 1.2345678e-11};
const ProgressFigures kFigures{.elapsed_s = 12.3, .samples_per_second = 229876.5, .left_s = 3753};

TEST_CASE("status lines at 40, 80 and 200 columns, and lines of logs") {
  std::string text;
  for (const int columns : {40, 80, 200}) {
    text += fmt::format("{} columns\n", columns);
    for (const std::string& line : {status_line(kPlan, kBegun, {.elapsed_s = 1}, columns),
                                    status_line(kPlan, kTraining, kFigures, columns),
                                    status_line(kPlan, kEvaluating, kFigures, columns),
                                    status_line(kBySteps, kTraining, kFigures, columns),
                                    status_line(kPlan, kHuge, kFigures, columns)}) {
      CHECK(static_cast<int>(line.size()) < columns);
      text += line + "|\n";
    }
  }
  text += "log\n" + progress_line(kPlan, kBegun, {.elapsed_s = 61}) +
          progress_line(kPlan, kTraining, kFigures) + progress_line(kPlan, kEvaluating, kFigures) +
          progress_line(kBySteps, kTraining, kFigures) +
          step_line(kPlan, {.epoch = 1, .of_epoch = 100, .step = 100, .loss = 0.4321, .lr = 0.01}) +
          step_line(kBySteps, {.epoch = 2, .of_epoch = 1, .step = 601, .loss = -std::nan("")}) +
          step_line(kPlan, {.epoch = 1, .of_epoch = 3, .loss = 2, .lr = 0.1, .skipped = true}) +
          epoch_text(kPlan, 10) + "\n" +
          epoch_figures({.seconds = 0.262, .samples_per_second = 2.3e5, .lr = 0.001}) + "\n" +
          epoch_figures(
              {.seconds = 75.04, .samples_per_second = 8, .lr = 1e-5, .evaluation_s = 1234.5}) +
          "\n";
  check_golden(text, "train/golden/progress.txt");
}

TEST_CASE("speed and end of a run are those of its recent steps and its evaluations") {
  ProgressPlan plan = kPlan;
  plan.evaluate_every = 0;
  SpeedEstimate pace(plan, 100);
  ProgressState now{.epoch = 1, .began_s = 100};
  CHECK(pace.figures(now, 101).elapsed_s == 1);
  CHECK_FALSE(pace.figures(now, 101).left_s);
  CHECK_FALSE(pace.figures(now, 101).samples_per_second);
  now.step = now.of_epoch = 60;
  ProgressFigures f = pace.figures(now, 106);  // ten steps a second
  CHECK(*f.samples_per_second == doctest::Approx(1000));
  CHECK(*f.left_s == doctest::Approx(594));
  // Within the next step the time goes on, but not below what the other steps take.
  CHECK(*pace.figures(now, 106.05).left_s == doctest::Approx(593.95));
  CHECK(*pace.figures(now, 109).left_s == doctest::Approx(593.9));
  CHECK(*pace.figures(now, 109).samples_per_second == doctest::Approx(1000));
  // A long time at half the speed outweighs the beginning.
  now.step = now.of_epoch = 560;
  CHECK(*pace.figures(now, 206).samples_per_second == doctest::Approx(502).epsilon(0.01));
}

TEST_CASE("a resumed run counts its own steps alone") {
  ProgressPlan plan = kPlan;
  plan.evaluate_every = 0;
  plan.steps_before = 3000;
  SpeedEstimate pace(plan, 0);
  ProgressState now{.epoch = 6, .step = 3000};
  CHECK_FALSE(pace.figures(now, 1).left_s);
  CHECK_FALSE(has(status_line(plan, now, {}, 200), "loss"));
  now.step = 3010;
  CHECK(*pace.figures(now, 10).left_s == doctest::Approx(2990));
}

TEST_CASE("evaluations count for the end of a run") {
  SpeedEstimate pace(kPlan, 0);
  // 600 steps in 60 s, each of 100 samples; 10000 samples are 100 batches.
  ProgressState now{.epoch = 1, .of_epoch = 600, .step = 600};
  // Ten evaluations, each a third of 100 steps.
  CHECK(*pace.figures(now, 60).left_s == doctest::Approx(540 + 10 * 10.0 / 3));
  now.evaluating = 1;
  now.trained_s = now.began_s = 60;
  CHECK(*pace.figures(now, 60).left_s == doctest::Approx(540 + 10 * 10.0 / 3));
  now.batches = 25;  // in 5 s: 15 s more
  CHECK(*pace.figures(now, 65).left_s == doctest::Approx(540 + 15 + 9 * 10.0 / 3));
  now.evaluating = 0;
  now.evaluated_s = 20;
  now.began_s = 80;
  CHECK(*pace.figures(now, 80).left_s == doctest::Approx(540 + 9 * 20));
  now.epoch = 2;
  now.of_epoch = 0;
  CHECK(*pace.figures(now, 80).left_s == doctest::Approx(540 + 9 * 20));
}

TEST_CASE("evaluations by steps count for the end of a run") {
  ProgressPlan plan = kPlan;
  plan.evaluate_every = 0;
  plan.evaluate_every_steps = 500;
  SpeedEstimate pace(plan, 0);
  // 600 steps in 60 s; the evaluation after step 500 took 20 s.
  ProgressState now{.epoch = 1, .of_epoch = 600, .step = 600, .began_s = 20, .evaluated_s = 20};
  CHECK(*pace.figures(now, 80).left_s == doctest::Approx(540 + 11 * 20));
  now = {.epoch = 2,
         .of_epoch = 400,
         .step = 1000,
         .batches = 50,
         .evaluating = 1,
         .began_s = 120,
         .trained_s = 100,
         .evaluated_s = 20};
  CHECK(*pace.figures(now, 130).left_s == doctest::Approx(500 + 10 + 10 * 20));
}

}  // namespace
}  // namespace dpt
