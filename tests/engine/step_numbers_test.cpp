// A step's divisor, and its result from sums.
#include "engine/step_numbers.h"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

namespace dpt {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST_CASE("the divisor counts terms, unless the loss is a sum or the targets determine it") {
  Session s;
  s.model.terms_per_sample = 3;
  s.model.divisor = Divisor::samples;
  CHECK(natural_divisor(s.model, 5) == 15);
  s.model.divisor = Divisor::one;
  CHECK(natural_divisor(s.model, 5) == 1);
  s.model.divisor = Divisor::targets;
  CHECK(natural_divisor(s.model, 5) == 1);
}

TEST_CASE("the result of a step follows from loss and divisor") {
  Session s;
  const StepResult fine = result_of(s, {.loss = 2, .divisor = 8});
  CHECK(fine.loss == 2);
  CHECK(fine.weight == 8);
  CHECK(fine.rank0_loss == 2);
  CHECK(fine.finite);
  CHECK_FALSE(fine.empty);
  CHECK_FALSE(fine.overflowed);

  const StepResult infinite = result_of(s, {.loss = kInfinity, .divisor = 8});
  CHECK_FALSE(infinite.finite);
  CHECK_FALSE(infinite.overflowed);
  s.precision.scaler.on = true;
  CHECK(result_of(s, {.loss = kInfinity, .divisor = 8}).overflowed);
}

TEST_CASE("a step whose targets are all ignored is empty and counts as finite") {
  Session s;
  const StepSums none{.loss = std::nan(""), .divisor = 0};
  CHECK_FALSE(result_of(s, none).empty);
  CHECK_FALSE(result_of(s, none).finite);
  s.model.takes_empty_steps = true;
  s.precision.scaler.on = true;
  const StepResult r = result_of(s, none);
  CHECK(r.empty);
  CHECK(r.finite);
  CHECK_FALSE(r.overflowed);
}

TEST_CASE("rank 0's own mean is reported only for `log.loss: rank0` of several replicas") {
  Session s;
  // Rank 0's terms, 3 of 8, have the sum 6.
  const StepSums sums{.loss = 2, .divisor = 8, .rank0_loss = 0.75, .rank0_divisor = 3};
  CHECK(result_of(s, sums).rank0_loss == 2);
  s.settings.spec.log.loss = "rank0";
  CHECK(result_of(s, sums).rank0_loss == 2);
  s.devices.topology.ranks = 2;
  s.model.divisor = Divisor::one;
  CHECK_FALSE(reports_rank0_loss(s.settings.spec, s.devices, s.model));
  s.model.divisor = Divisor::samples;
  CHECK(reports_rank0_loss(s.settings.spec, s.devices, s.model));
  CHECK(result_of(s, {.loss = 2, .divisor = 8, .rank0_loss = 1.5, .rank0_divisor = 3}).rank0_loss ==
        4);
  s.devices.topology.devices_per_replica = 2;  // the ranks are stages of one replica
  CHECK_FALSE(reports_rank0_loss(s.settings.spec, s.devices, s.model));
}

}  // namespace
}  // namespace dpt
