// state.json: every value comes back to the last bit, and what was not written by dptrain is
// refused.
#include "checkpoint/train_state.h"

#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"

namespace dpt {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

TrainState example() {
  TrainState s;
  s.step = 12;
  s.epoch = 2;
  s.of_epoch = 4;
  s.lr = 0.1;
  s.loss_sum = -kInfinite;
  s.loss_weight = 1.0 / 3;
  s.seconds = 1e-300;
  s.skipped_before = 6;
  s.scaler = {.scale = 1024, .growth_tracker = 7, .skipped = 8, .skipped_in_a_row = 1};
  s.schedule = {0.5, kInfinite, -1e300};
  s.noise = {-0.25, 1.0 / 3};
  s.previous_lr = {0.1, 1.0 / 3};
  s.generator = Generator(5);
  s.drawn_by = Generator(6);
  s.metrics_bytes = 345;
  s.build = "a \"build\"\n";
  s.seed = -7;
  s.optimizer = "adam";
  s.steps_of_epoch = 5;
  s.samples = "one order for all";
  return s;
}

TEST_CASE("a state comes back to the last bit") {
  const TrainState s = example(), r = train_state_of(to_json(s), "state.json");
  CHECK(r.step == 12);
  CHECK(r.epoch == 2);
  CHECK(r.of_epoch == 4);
  CHECK(r.lr == 0.1);
  CHECK(r.loss_sum == -kInfinite);
  CHECK(r.loss_weight == 1.0 / 3);
  CHECK(r.seconds == 1e-300);
  CHECK(r.skipped_before == 6);
  CHECK(r.scaler.scale == 1024);
  CHECK(r.scaler.growth_tracker == 7);
  CHECK(r.scaler.skipped == 8);
  CHECK(r.scaler.skipped_in_a_row == 1);
  CHECK(r.schedule == s.schedule);
  CHECK(r.noise == s.noise);
  CHECK(r.previous_lr == s.previous_lr);
  CHECK(r.generator.state() == s.generator.state());
  CHECK(r.drawn_by.state() == s.drawn_by.state());
  CHECK(r.metrics_bytes == 345);
  CHECK(r.build == s.build);
  CHECK(r.seed == -7);
  CHECK(r.optimizer == "adam");
  CHECK(r.steps_of_epoch == 5);
  CHECK(r.samples == s.samples);
  CHECK(to_json(r) == to_json(s));
}

TEST_CASE("a loss that is no number, and a schedule without a state, come back") {
  TrainState s = example();
  s.loss_sum = std::nan("");
  s.schedule.clear();
  const TrainState r = train_state_of(to_json(s), "state.json");
  CHECK(std::isnan(r.loss_sum));
  CHECK(r.schedule.empty());
}

// The error for the text, with `from` in it replaced; "": none.
std::string error_of(const std::string& from, const std::string& to) {
  std::string text = to_json(example());
  const size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  try {
    train_state_of(text.replace(at, from.size(), to), "run/state.json");
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::data);
    return e.what();
  }
  return "";
}

TEST_CASE("a key that is missing, or holds something else, is named with the file") {
  const auto named = [](const std::string& key) {
    return "run/state.json has no valid '" + key +
           "'; it is damaged or was written by another version of dptrain";
  };
  CHECK(error_of("\"step\"", "\"other\"") == named("step"));
  CHECK(error_of("\"step\": 12", "\"step\": 12x") ==
        "run/state.json is damaged: '}' was expected (byte 14)");
  CHECK(error_of("\"step\": 12", "\"step\": [12]") == named("step"));
  CHECK(error_of("\"lr\": 0.1", "\"lr\": \"a tenth\"") == named("lr"));
  CHECK(error_of("\"optimizer\": \"adam\"", "\"optimizer\": [\"adam\"]") == named("optimizer"));
  CHECK(error_of("\"schedule\": [0.5", "\"schedule\": [\"half\"") == named("schedule"));
  CHECK(error_of("\"schedule\": [0.5, \"inf\", -1e+300]", "\"schedule\": 0.5") ==
        named("schedule"));
  CHECK(error_of("\"generator\": \"", "\"generator\": \"x") == named("generator"));
  CHECK(error_of("\"samples\": \"one order for all\"", "\"samples\": [1]") == named("samples"));
  CHECK(error_of("\"samples\"", "\"added\"").empty());  // the first checkpoints have none
  CHECK(error_of("{", "[").find("run/state.json") != std::string::npos);
}

TEST_CASE("best values come back; a state of version 0.1.0 has none") {
  TrainState s = example();
  s.evaluations = 3;
  s.evaluated_after = 9;
  s.best = {.metric = "accuracy", .value = 0.1, .epoch = 2, .step = 7, .waited = 1};
  s.early_stop = {.metric = "loss", .value = kInfinite, .epoch = 1, .step = 3, .waited = 2};
  const std::string text = to_json(s);
  const TrainState r = train_state_of(text, "state.json");
  CHECK(r.evaluations == 3);
  CHECK(r.evaluated_after == 9);
  CHECK(r.best.metric == "accuracy");
  CHECK(r.best.value == 0.1);
  CHECK(r.best.epoch == 2);
  CHECK(r.best.step == 7);
  CHECK(r.best.waited == 1);
  CHECK(r.early_stop.value == kInfinite);
  CHECK(r.early_stop.waited == 2);
  const size_t from = text.find(",\n  \"evaluations\"");
  REQUIRE(from != text.npos);
  const TrainState old = train_state_of(text.substr(0, from) + "\n}\n", "state.json");
  CHECK(old.samples == s.samples);
  CHECK(old.evaluations == 0);
  CHECK(old.evaluated_after == -1);
  CHECK(old.best.metric.empty());
}

TEST_CASE("counts that no run can have are refused") {
  for (const std::string count :
       {"\"step\": 12", "\"epoch\": 2", "\"steps_of_this_epoch\": 4", "\"skipped\": 8",
        "\"skipped_before_this_epoch\": 6", "\"metrics_bytes\": 345"}) {
    CAPTURE(count);
    const std::string key = count.substr(0, count.find(' ') + 1);
    CHECK(error_of(count, key + "-1") == "run/state.json is damaged: it has a negative count");
    if (key != "\"step\": ") CHECK(error_of(count, key + "0").empty());
  }
  const std::string of = "\"steps_of_this_epoch\": 4", steps = "\"step\": 12";
  CHECK(error_of(of, "\"steps_of_this_epoch\": 5").empty());
  CHECK(error_of(of, "\"steps_of_this_epoch\": 6") ==
        "run/state.json is damaged: it was written after step 6 of an epoch of 5 steps");
  CHECK(error_of(steps, "\"step\": 4").empty());
  CHECK(error_of(steps, "\"step\": 3") ==
        "run/state.json is damaged: it was written after step 4 of an epoch of 5 steps");
}

}  // namespace
}  // namespace dpt
