// What the clock of a measured run is told of each worker: into how many pieces of each kind steps
// fall. How long they take is nothing that a test can know.
#include "engine/plan_step_clock.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "train/run_spec.h"

namespace dpt {
namespace {

constexpr int kSteps = 3;

// Of the last steps of a run of threads, one step having gone before.
std::vector<PlanStepClock> clocks_of(const std::string& parallel, int devices) {
  const auto session = session_of(R"(
data: {dataset: {random: {samples: 64, in_features: 3, out_features: 2}}, batch_size: 16}
model: [{linear: 5}, relu, {linear: 2}]
loss: mse_loss
optimizer: {sgd: 0.01}
)",
                                  {"parallel=" + parallel, fmt::format("devices={}", devices),
                                   "cores=1", "save=false", "epochs=1"});
  std::vector<PlanStepClock> clocks(static_cast<size_t>(devices),
                                    PlanStepClock({1, 1 + kSteps}, {1, 1 + kSteps}));
  const Probe probe{clocks, [](int) {}};
  CHECK(run(*session, {.probe = &probe}) == 0);
  return clocks;
}

TEST_CASE("copies between stages are communication") {
  const auto exchanges = [](int chunks) {
    int64_t all = 0;
    for (const PlanStepClock& c : clocks_of(fmt::format("{{pipeline: {{chunks: {}}}}}", chunks), 2))
      all += c.marks(PlanStepClock::exchange);
    return all;
  };
  // Each chunk's activations go on, and their gradients back; sums of losses are there once a step.
  const int64_t one = exchanges(1);
  CHECK(exchanges(2) - one == kSteps * 2);
  CHECK(exchanges(4) - one == kSteps * 2 * 3);
}

TEST_CASE("workers of dp wait for each other in every step, one alone for nobody") {
  CHECK(clocks_of("single", 1)[0].marks(PlanStepClock::waiting) == 0);
  for (const PlanStepClock& clock : clocks_of("dp", 2)) {
    CHECK(clock.marks(PlanStepClock::waiting) >= kSteps);
    CHECK(clock.marks(PlanStepClock::waiting) % kSteps == 0);
  }
}

}  // namespace
}  // namespace dpt
