#include "optim/group_schedules.h"

#include "optim/fixture.h"

namespace dpt::optim_test {
namespace {

ScheduleSpec spec_of(std::string_view name, const std::string& text) {
  const ScheduleType& type = row(schedule_table(), name);
  return {.schedule = {&type, settings(type, text), {}}};
}

TEST_CASE("each base rate has the schedule that it would have alone") {
  const ScheduleSpec cosine = spec_of("cosine_annealing", "{eta_min: 0.001}");
  const std::vector<double> rates = {0.1, 0.01};
  GroupSchedules both(cosine, rates, 10);
  for (size_t i = 0; i < rates.size(); ++i) {
    const auto alone = make_schedule(cosine, rates[i], 10);
    for (int64_t k = 0; k <= 10; ++k) CHECK(both.lr(k, i) == alone->lr(k));
  }
  CHECK(both.lr(10, 1) == 0.001);  // eta_min is no factor
}

TEST_CASE("states of all rates are saved and restored") {
  const ScheduleSpec plateau = spec_of("reduce_on_plateau", "{patience: 0, factor: 0.5}");
  const std::vector<double> rates = {0.1, 0.01};
  GroupSchedules first(plateau, rates, 10);
  for (const double loss : {1.0, 2.0, 3.0}) first.metric(loss);
  CHECK(first.lr(3, 0) == 0.025);
  CHECK(first.lr(3, 1) == 0.0025);
  GroupSchedules second(plateau, rates, 10);
  CHECK(second.restore(first.state()).empty());
  CHECK(second.lr(3, 0) == 0.025);
  CHECK(second.lr(3, 1) == 0.0025);
  CHECK(second.state() == first.state());

  SUBCASE("a checkpoint without groups: each rate has been lowered as much") {
    GroupSchedules one(plateau, std::vector<double>{0.1}, 10);
    for (const double loss : {1.0, 2.0, 3.0}) one.metric(loss);
    CHECK(one.state().size() == 5);  // what versions without groups wrote
    GroupSchedules later(plateau, rates, 10);
    CHECK(later.restore(one.state()).size() == 1);  // a note on the rate that is new
    CHECK(later.lr(3, 0) == 0.025);
    CHECK(later.lr(3, 1) == 0.0025);
  }
  SUBCASE("fewer rates than were saved") {
    GroupSchedules one(plateau, std::vector<double>{0.1}, 10);
    CHECK(one.restore(first.state()).empty());
    CHECK(one.lr(3) == 0.025);
  }
  SUBCASE("the state of another kind of schedule, or none, is ignored") {
    GroupSchedules later(plateau, rates, 10);
    CHECK(later.restore({}).empty());
    CHECK(later.restore(std::vector<double>{1, 2, 3}).empty());
    CHECK(later.lr(0, 1) == 0.01);
    GroupSchedules steps(spec_of("step", "{step_size: 2}"), rates, 10);
    CHECK(steps.restore(first.state()).empty());
  }
}

}  // namespace
}  // namespace dpt::optim_test
