// When instructions of a plan are executed.
#include "engine/plan_steps.h"

#include <string>

#include <doctest/doctest.h>

namespace dpt {
namespace {

// The micro-batches, of three, in which a step is executed.
std::string of_three(PlanStep::When when, bool measured = false) {
  std::string out;
  for (size_t m = 0; m < 3; ++m) out += happens(when, m, 3, measured) ? '1' : '0';
  return out;
}

TEST_CASE("instructions are executed in the micro-batches that they name") {
  CHECK(of_three(PlanStep::When::always) == "111");
  CHECK(of_three(PlanStep::When::between) == "110");
  CHECK(of_three(PlanStep::When::last) == "001");
  CHECK(of_three(PlanStep::When::later) == "011");
  CHECK(of_three(PlanStep::When::measured) == "000");
  CHECK(of_three(PlanStep::When::measured, true) == "111");
}

}  // namespace
}  // namespace dpt
