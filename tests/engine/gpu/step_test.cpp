// What a GPU is told in one training step: what the plan's lists say, in their order.
#include "engine/gpu/step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "engine/cpu/one_worker.h"
#include "engine/gpu/gpu_runner.h"
#include "engine/plan_steps.h"
#include "engine/some_weights.h"

namespace dpt {
namespace {

struct Stepper {
  OneGpu one;
  std::optional<GpuRunner> r;
  std::optional<GpuStep> step;

  explicit Stepper(const std::vector<std::string>& how) : one(kTinySpec, how) {
    set_some_weights(*one.session, one.buffers);
    r.emplace(one);
    step.emplace(one.worker, GpuStep::Uses{.bindings = r->bindings,
                                           .update = one.update,
                                           .launch_queue = one.launch_queue,
                                           .exchange = nullptr,
                                           .gather = nullptr,
                                           .stages = nullptr});
    step->set_input(r->train.get());
  }
  // The session is this test's own.
  Plan& plan() const { return const_cast<Plan&>(one.session->plan); }

  // Runs a step with a learning rate of 1, and returns its report.
  cuda::StepReport run(int64_t batch) {
    const auto its = r->step(batch);
    const OptimizerStep sgd = one.session->settings.optimizer->step(
        one.session->settings.spec.optimizer.settings, 1, 1, {});
    const LaunchQueue::Step queued{
        .input = its->input, .rows = its->rows, .divisor = static_cast<double>(its->rows.samples)};
    one.launch_queue.submit({&queued, 1}, 0, {&sgd, 1});
    one.api.take_calls();
    step->enqueue(its->rows, 0, 0);
    told = one.api.take_calls();
    one.launch_queue.enqueue_reports();
    return one.launch_queue.complete(true)->reports[0];
  }
  std::vector<float> weights() {
    one.update.download_weights(one.buffers);
    const size_t count = one.session->model.layout.trainable;
    return {one.buffers.weights(), one.buffers.weights() + count};
  }

  std::vector<std::string> told;  // in the last step
};

// The plan's step that a call to the GPU begins or is. Others, such as a kernel that gathers
// targets, follow one of these.
std::string step_of_call(const std::string& call) {
  constexpr std::array<std::array<const char*, 2>, 6> kMarks = {{{"BeginBatch", "load"},
                                                                 {"CrossEntropyTerms", "loss"},
                                                                 {"AddTo", "add_gradients"},
                                                                 {"DecideUpdate", "decide"},
                                                                 {"Update<", "update"},
                                                                 {"PartialSums", "sum squares"}}};
  for (const auto& [word, step] : kMarks)
    if (call.find(word) != std::string::npos) return step;
  return "";
}

std::vector<std::string> marks_of(const std::vector<std::string>& calls) {
  std::vector<std::string> out;
  for (const std::string& call : calls)
    if (std::string step = step_of_call(call); !step.empty()) out.push_back(std::move(step));
  return out;
}

std::string mark_of(const PlanStep& s) {
  if (s.op == PlanOp::load) return "load";
  if (s.op == PlanOp::run && s.part == Part::loss) return "loss";
  if (s.op == PlanOp::add_gradients) return "add_gradients";
  if (s.op == PlanOp::sum && s.quantity == Quantity::squares) return "sum squares";
  if (s.op == PlanOp::decide) return "decide";
  if (s.op == PlanOp::update) return "update";
  return "";
}

// What the lists of a plan without a prologue say.
std::vector<std::string> marks_of(const Plan& plan, size_t micro_batches) {
  std::vector<std::string> out;
  const auto add = [&](const PlanStep& s) {
    if (std::string mark = mark_of(s); !mark.empty()) out.push_back(std::move(mark));
  };
  for (size_t m = 0; m < micro_batches; ++m)
    for (const PlanStep& s : plan.micro)
      if (happens(s.when, m, micro_batches, true)) add(s);
  for (const PlanStep& s : plan.update) add(s);
  return out;
}

TEST_CASE("a GPU is told the steps of the plan's lists, in their order") {
  Stepper one({"accumulate=1"}), two({"accumulate=2"}), clipped({"clip_grad_norm=1"});
  one.run(0);
  CHECK(marks_of(one.told) == std::vector<std::string>{"load", "loss", "decide", "update"});
  CHECK(marks_of(one.told) == marks_of(one.plan(), 1));
  two.run(0);
  CHECK(marks_of(two.told) == std::vector<std::string>{"load", "loss", "load", "loss",
                                                       "add_gradients", "decide", "update"});
  CHECK(marks_of(two.told) == marks_of(two.plan(), 2));
  clipped.run(0);
  CHECK(std::ranges::count(marks_of(clipped.told), "sum squares") == 1);
  CHECK(marks_of(clipped.told) == marks_of(clipped.plan(), 1));
}

TEST_CASE("what the lists do not say is not done") {
  Stepper s({});
  const std::vector<float> before = s.weights();
  const Plan::Steps update = s.plan().update;
  s.plan().update.clear();
  s.run(0);
  CHECK(marks_of(s.told) == std::vector<std::string>{"load", "loss"});
  CHECK(s.weights() == before);
  s.plan().update = update;
  s.run(0);
  CHECK(s.weights() != before);
}

TEST_CASE("steps of some micro-batches are done in these") {
  using When = PlanStep::When;
  struct Case {
    When when;
    std::array<int, 3> counts;  // of added steps and the plan's own
  };
  for (const Case& c : {Case{When::between, {1, 2, 1}}, Case{When::last, {0, 1, 2}},
                        Case{When::later, {0, 2, 2}}, Case{When::always, {1, 2, 2}}}) {
    CAPTURE(static_cast<int>(c.when));
    Stepper s({"accumulate=3"});
    s.plan().micro.push_back(
        {.op = PlanOp::add_gradients, .actor = PlanStep::Actor::gpus, .when = c.when});
    std::vector<std::string> expected;
    for (const int count : c.counts) {
      expected.insert(expected.end(), {"load", "loss"});
      expected.insert(expected.end(), static_cast<size_t>(count), "add_gradients");
    }
    expected.insert(expected.end(), {"decide", "update"});
    s.run(0);
    CHECK(marks_of(s.told) == expected);
  }
}

TEST_CASE("micro-batches add up to the step of the whole batch") {
  Stepper whole({"accumulate=1"});
  const std::vector<float> before = whole.weights();
  const cuda::StepReport report = whole.run(0);
  const std::vector<float> expected = whole.weights();
  for (const char* accumulate : {"accumulate=2", "accumulate=4"}) {
    CAPTURE(accumulate);
    Stepper s({accumulate});
    // Sums of eight terms in another order, in the precision of floats and doubles.
    CHECK(s.run(0).loss == doctest::Approx(report.loss).epsilon(1e-6));
    const std::vector<float> found = s.weights();
    REQUIRE(found.size() == expected.size());
    float moved = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      CHECK(std::abs(found[i] - expected[i]) < 1e-6F);
      moved = std::max(moved, std::abs(found[i] - before[i]));
    }
    CHECK(moved > 1e-2F);
  }
}

TEST_CASE("sharing weights repeats only what follows the update") {
  Stepper s({});
  s.one.api.take_calls();
  s.step->share_weights();
  CHECK(s.one.api.take_calls().empty());  // one GPU shares with nobody
  REQUIRE(s.plan().update.back().op == PlanOp::update);
  const PlanStep update = s.plan().update.back();
  s.plan().update.push_back(update);
  s.run(0);  // decides which formula an update uses
  CHECK(marks_of(s.told) == std::vector<std::string>{"load", "loss", "decide", "update", "update"});
  s.one.api.take_calls();
  s.step->share_weights();
  CHECK(marks_of(s.one.api.take_calls()) == std::vector<std::string>{"update"});
}

}  // namespace
}  // namespace dpt
