// What follows from the numbers of evaluations: the best value, patience, and when they are due.
#include "train/evaluations.h"

#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/resumed_run.h"
#include "train/evaluation_text.h"
#include "train/time_limit.h"

namespace dpt {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST_CASE("the best value of a loss is the lowest, of an accuracy the highest") {
  BestValue loss{.metric = "loss"}, accuracy{.metric = "accuracy"};
  int64_t epoch = 0;
  std::vector<bool> lower, higher;
  for (const double x : {0.5, kNan, 0.4, 0.4, 0.6}) {
    ++epoch;
    lower.push_back(take_in(loss, {.loss = x}, 0, epoch, 10 * epoch));
    higher.push_back(take_in(accuracy, {.accuracy = std::isnan(x) ? 0 : x}, 0, epoch, epoch));
  }
  CHECK(lower == std::vector<bool>{true, false, true, false, false});
  CHECK(loss.value == 0.4);
  CHECK(loss.epoch == 3);
  CHECK(loss.step == 30);
  CHECK(loss.waited == 2);
  CHECK(higher == std::vector<bool>{true, false, false, false, true});
  CHECK(accuracy.epoch == 5);
  CHECK(accuracy.waited == 0);
}

TEST_CASE("an improvement by less than min_delta is none, and NaN never is the first") {
  BestValue best{.metric = "loss"};
  CHECK(!take_in(best, {.loss = kNan}, 0.1, 1, 1));
  CHECK(take_in(best, {.loss = 1}, 0.125, 2, 2));
  CHECK(!take_in(best, {.loss = 0.875}, 0.125, 3, 3));
  CHECK(take_in(best, {.loss = 0.75}, 0.125, 4, 4));  // compared with the best, not the last
  CHECK(best.value == 0.75);
}

TEST_CASE("patience counts evaluations without improvement; a resumed run goes on counting") {
  const auto session = session_of(
      kFiveSteps, {"cores=1", "save.best=accuracy", "early_stop={patience: 2, min_delta: 0.25}"});
  Evaluations all(*session);
  CHECK(all.add({.loss = 1, .accuracy = 0.5}, 1, 5));
  CHECK(!all.add({.loss = 0.9, .accuracy = 0.25}, 2, 10));
  CHECK(!all.ends_run());
  TrainState state;
  all.write(state);
  Evaluations rest(*session);
  rest.read(state);
  CHECK(rest.count() == 2);
  CHECK(rest.add({.loss = 0.8, .accuracy = 0.75}, 3, 15));  // the loss waits, the accuracy improves
  CHECK(rest.ends_run());
  CHECK(rest.best().epoch == 3);
  CHECK(rest.early_stop().epoch == 1);
  // With another metric, it begins anew.
  const auto other = session_of(kFiveSteps, {"cores=1", "early_stop={patience: 2, metric: f1}"});
  Evaluations anew(*other);
  anew.read(state);
  CHECK(anew.early_stop().waited == 0);
}

TEST_CASE("evaluations are due by epochs or by steps") {
  const auto by_epoch = session_of(kFiveSteps, {"cores=1", "evaluate.every=2"});
  const Evaluations epochs(*by_epoch);
  CHECK(!epochs.due_after_epoch(1, 5));
  CHECK(epochs.due_after_epoch(2, 10));
  CHECK(!epochs.due_between(4));
  const auto by_step = session_of(kFiveSteps, {"cores=1", "evaluate.every_steps=4"});
  Evaluations steps(*by_step);
  CHECK(!steps.due_after_epoch(1, 5));
  CHECK(steps.due_after_epoch(4, 20));
  CHECK(steps.due_between(4));
  CHECK(!steps.due_between(0));
  steps.add({}, 1, 4);
  CHECK(!steps.due_between(4));  // made already
  CHECK(steps.due_between(8));
  const auto none = session_of(kFiveSteps, {"cores=1", "evaluate=false"});
  CHECK(!Evaluations(*none).due_after_epoch(1, 5));
}

TEST_CASE("an evaluation as text, JSON and CSV") {
  const Evaluation e{.loss = 0.25,
                     .accuracy = 0.875,
                     .metrics = {{"top5", 0.995}, {"f1", 0.5}, {"r2", kNan}},
                     .confusion_matrix = {3, 1, 0, 4}};
  CHECK(evaluation_text("test", {.loss = 0.25, .accuracy = 0.875}) ==
        "Test loss: 0.2500, Accuracy: 87.50 %");
  CHECK(evaluation_text("validation", e) ==
        "Validation loss: 0.2500, Validation accuracy: 87.50 %, Validation top5: 99.50 %, "
        "Validation f1: 0.5000, Validation r2: nan");
  Json record;
  add_evaluation(record, "validation", e);
  CHECK(record.dump() ==
        R"({"validation.loss": 0.25, "validation.accuracy": 0.875000, "validation.top5": 0.995)"
        R"(, "validation.f1": 0.5, "validation.r2": null})");
  CHECK(confusion_csv(e, {}) == "actual,0,1\n0,3,1\n1,0,4\n");
  const std::vector<std::string> names = {"cat", "dog, wet"};
  CHECK(confusion_csv(e, names) == "actual,cat,\"dog, wet\"\ncat,3,1\n\"dog, wet\",0,4\n");
  CHECK(e.find("loss") == 0.25);
  CHECK(e.find("f1") == 0.5);
  CHECK(!e.find("mae"));
}

TEST_CASE("a limit on time reads the clock rarely while it is far away") {
  double time = 100;
  int looks = 0;
  const auto clock = [&] {
    ++looks;
    return time;
  };
  TimeLimit limit(1.0);
  limit.begin(time);
  for (int i = 0; i < 6400; ++i) CHECK(!limit.over(clock));
  CHECK(looks < 120);
  time = 160;
  int calls = 1;
  while (!limit.over(clock)) ++calls;
  CHECK(calls <= 64);
  TimeLimit none({});
  CHECK(!none.over(clock));
}

}  // namespace
}  // namespace dpt
