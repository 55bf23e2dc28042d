#include "optim/schedule.h"

#include "optim/fixture.h"
#include "optim/optimizer.h"

namespace dpt::optim_test {
namespace {

ScheduleSpec spec_of(std::string_view name, const std::string& text, int64_t warmup = 0) {
  const ScheduleType& type = row(schedule_table(), name);
  return {.schedule = {&type, settings(type, text), {}}, .warmup = warmup, .warmup_factor = 0.5};
}

// What check_schedule says of an optimizer and a schedule, both with their defaults.
std::string check(std::string_view optimizer, const ScheduleSpec& schedule) {
  const Document doc = document("test.yaml", "schedule: here");
  const OptimizerType& type = row(optimizer_table(), optimizer);
  Spec spec;
  spec.optimizer = {&type, settings(type, "{}"), {}};
  spec.schedule = schedule;
  spec.schedule.schedule.where = doc.root.entries[0].value.where;
  Diagnostics d;
  check_schedule(spec, d);
  return d.ok() ? "" : d.render();
}

TEST_CASE("a spec without a schedule keeps its rate, after a warm-up too") {
  CHECK(make_schedule({}, 0.1, 10)->lr(9) == 0.1);
  const auto warm = make_schedule({.warmup = 4, .warmup_factor = 0.5}, 1, 10);
  CHECK(warm->lr(0) == 0.5);
  CHECK(warm->lr(2) == 0.75);
  CHECK(warm->lr(4) == 1);
  CHECK_FALSE(warm->momentum(4).has_value());
}

TEST_CASE("behind a warm-up a schedule has what is left of the run") {
  const auto cosine = make_schedule(spec_of("cosine_annealing", "{}", 4), 1, 12);
  CHECK(cosine->lr(4) == 1);
  CHECK(cosine->lr(8) == doctest::Approx(0.5).epsilon(1e-15));
  CHECK(cosine->lr(12) == 0);
  const auto cycle = make_schedule(spec_of("one_cycle", "1.0", 4), 1, 12);
  CHECK(cycle->momentum(0) == 0.95);
  CHECK(cycle->momentum(4) == 0.95);
  CHECK(cycle->momentum(6).value_or(1) < 0.95);
}

// As SequentialLR of LinearLR and OneCycleLR, whose constructor sets the rate: 1 / 25 here.
TEST_CASE("a warm-up ends where a schedule with a rate of its own begins") {
  const auto cycle = make_schedule(spec_of("one_cycle", "1.0", 4), 100, 12);
  CHECK(cycle->lr(0) == doctest::Approx(0.02).epsilon(1e-15));
  CHECK(cycle->lr(2) == doctest::Approx(0.03).epsilon(1e-15));
  CHECK(cycle->lr(4) == doctest::Approx(0.04).epsilon(1e-15));
}

TEST_CASE("the losses of a warm-up say nothing about a plateau") {
  const auto s = make_schedule(spec_of("reduce_on_plateau", "{patience: 0}", 3), 1, 12);
  for (int64_t k = 0; k < 3; ++k) {
    s->lr(k);
    s->metric(1);
  }
  CHECK(s->lr(3) == 1);
  s->metric(1);  // the first that counts
  CHECK(s->lr(4) == 1);
  s->metric(1);
  CHECK(s->lr(5) == 0.1);
}

// A run may stop after an epoch's steps and before its evaluation.
TEST_CASE("a schedule goes on behind a warm-up before it was asked for a rate") {
  const auto made = [] {
    return make_schedule(spec_of("reduce_on_plateau", "{patience: 0}", 1), 1, 12);
  };
  for (const bool warm : {false, true}) {
    const auto s = made(), rest = made();
    for (int64_t k = 0; k <= int64_t{warm}; ++k) s->lr(k);
    rest->restore(s->state());
    for (const auto& each : {s.get(), rest.get()})
      for (int i = 0; i < 2; ++i) each->metric(1);
    CHECK(s->lr(2) == (warm ? 0.1 : 1));
    CHECK(rest->lr(2) == s->lr(2));
  }
}

TEST_CASE("what is counted: what the spec says, else what the schedule prefers") {
  CHECK(schedule_interval({}) == "epoch");
  CHECK(schedule_interval({.interval = "step"}) == "step");
  CHECK(schedule_interval(spec_of("one_cycle", "1.0")) == "step");
  CHECK(schedule_interval(spec_of("step", "3")) == "epoch");
}

TEST_CASE("a schedule with its warm-up as torch text") {
  CHECK(torch_schedule({}, 10).empty());
  CHECK(torch_schedule(spec_of("step", "3"), 10) == "lr_scheduler.StepLR(optimizer, step_size=3)");
  CHECK(torch_schedule({.warmup = 4, .warmup_factor = 0.25}, 10) ==
        "lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=4)");
  CHECK(torch_schedule(spec_of("cosine_annealing", "{}", 4), 10) ==
        "lr_scheduler.SequentialLR(optimizer, [lr_scheduler.LinearLR(optimizer, start_factor=0.5, "
        "total_iters=4), lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)], milestones=[4])");
  CHECK(torch_schedule(spec_of("cyclic", "{base_lr: 0.1, max_lr: 1}", 4), 10) ==
        "lr_scheduler.SequentialLR(optimizer, [lr_scheduler.CyclicLR(optimizer, base_lr=0.1, "
        "max_lr=1.0), lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=4)][::-1], "
        "milestones=[4])");
  const ScheduleSpec plateau = spec_of("reduce_on_plateau", "{}", 4);
  CHECK(torch_schedule(plateau, 10) == "lr_scheduler.ReduceLROnPlateau(optimizer)");
  CHECK(torch_warmup(plateau) ==
        "lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=4)");
}

TEST_CASE("one_cycle asks for an optimizer with momentum or beta1") {
  for (const char* name : {"sgd", "adam", "adam_w", "r_adam", "adamax", "rms_prop", "lion"})
    CHECK(check(name, spec_of("one_cycle", "1.0")).empty());
  for (const char* name : {"adagrad", "adadelta", "rprop", "asgd", "muon"}) {
    const std::string text = check(name, spec_of("one_cycle", "1.0"));
    CHECK(text.find("test.yaml:1:11: error: ") == 0);
    CHECK(text.find("cycles momentum or beta1, which optimizer '" + std::string(name) +
                    "' does not support; write 'cycle_momentum: false'") != std::string::npos);
    CHECK(check(name, spec_of("one_cycle", "{max_lr: 1, cycle_momentum: false}")).empty());
    CHECK(check(name, spec_of("step", "3")).empty());
  }
}

TEST_CASE("reduce_on_plateau counts epochs") {
  ScheduleSpec spec = spec_of("reduce_on_plateau", "{}");
  CHECK(check("sgd", spec).empty());
  spec.interval = "epoch";
  CHECK(check("sgd", spec).empty());
  spec.interval = "step";
  CHECK(check("sgd", spec).find("interval must be 'epoch'") != std::string::npos);
}

}  // namespace
}  // namespace dpt::optim_test
