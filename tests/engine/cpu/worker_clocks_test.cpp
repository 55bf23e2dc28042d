// To which of a worker's measurements its time goes. How long anything takes is nothing that a test
// can know, but time has passed when the clock has moved.
#include "engine/cpu/worker_clocks.h"

#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "engine/clock.h"

namespace dpt {
namespace {

void pass_time() {
  const double begin = now_s();
  while (now_s() <= begin) continue;
}

TEST_CASE("the time up to a mark belongs to its kind, in the steps that are measured") {
  PlanStepClock clock({1, 2}, {1, 2});
  WorkerClocks clocks(&clock, nullptr, 0);
  CHECK(clocks.plan_steps() == &clock);
  const auto step = [&](uint64_t number, PlanStepClock::Kind first, PlanStepClock::Kind second) {
    clocks.begin_step(number);
    pass_time();
    clocks.mark(first);
    pass_time();
    clocks.mark(second);
    clocks.mark(second);
    clocks.end_step(static_cast<int64_t>(10 + number));
  };
  step(0, PlanStepClock::update, PlanStepClock::update);
  step(1, PlanStepClock::compute, PlanStepClock::waiting);
  step(2, PlanStepClock::exchange, PlanStepClock::exchange);
  CHECK(clock.marks(PlanStepClock::compute) == 1);
  CHECK(clock.marks(PlanStepClock::waiting) == 2);
  CHECK(clock.marks(PlanStepClock::update) == 0);
  CHECK(clock.marks(PlanStepClock::exchange) == 0);
  CHECK(clock.seconds(PlanStepClock::compute) > 0);
  CHECK(clock.seconds(PlanStepClock::waiting) > 0);
  CHECK(clock.seconds(PlanStepClock::update) == 0);
  CHECK(clock.seconds(PlanStepClock::exchange) == 0);
  CHECK(clock.timed_samples() == 11);
}

TEST_CASE("the trace has each step of the plan with its micro-batch, training step and time") {
  const auto trace = std::make_unique<Trace>();
  WorkerClocks clocks(nullptr, trace.get(), 3);
  const PlanStep run{.op = PlanOp::run, .part = Part::backward, .stage = 2, .chunk = 5};
  const PlanStep sum{.op = PlanOp::sum, .quantity = Quantity::loss};
  double during = 0;
  clocks.begin_step(7);
  clocks.traced(run, 4, [&] {
    pass_time();
    during = now_s();
    pass_time();
  });
  clocks.begin_step(8);
  clocks.traced(sum, 0, [] {});
  clocks.mark(PlanStepClock::compute);  // nothing is measured by kind
  clocks.end_step(1);
  CHECK(clocks.plan_steps() == nullptr);
  REQUIRE(trace->events().size() == 2);
  const TraceEvent& first = trace->events()[0];
  CHECK(first.op == PlanOp::run);
  CHECK(first.part == Part::backward);
  CHECK(first.stage == 2);
  CHECK(first.chunk == 4);
  CHECK(first.step == 7);
  CHECK(first.begin < during);
  CHECK(during < first.end);
  const TraceEvent& second = trace->events()[1];
  CHECK(second.op == PlanOp::sum);
  CHECK(second.quantity == Quantity::loss);
  CHECK(second.step == 8);
  CHECK(second.begin >= first.end);
}

class Watch final : public MemoryWatch {
 public:
  Watch() { memory_watch = this; }
  ~Watch() override { memory_watch = nullptr; }
  void opened(const Session&, const Buffers&, int) override {}
  void begin(int worker, const PlanStep& step) override {
    begun += fmt::format("{} of {}; ", name_of(step), worker);
  }
  void read(const void*, size_t) override {}
  void write(const void*, size_t) override {}
  void kernel(const KernelArgs&) override {}
  void rows(const KernelArgs&, size_t, int64_t, int64_t) override {}
  std::string begun;
};

TEST_CASE("a step is done once, with or without a trace, and its beginning is reported to tests") {
  Watch watch;
  const auto trace = std::make_unique<Trace>();
  for (Trace* const to : {static_cast<Trace*>(nullptr), trace.get()}) {
    WorkerClocks clocks(nullptr, to, 2);
    watch.begun.clear();
    std::string begun_before;
    int times = 0;
    clocks.traced({.op = PlanOp::decide}, 0, [&] {
      begun_before = watch.begun;
      ++times;
    });
    CHECK(times == 1);
    CHECK(begun_before == "decide of 2; ");
    CHECK(watch.begun == begun_before);
  }
  CHECK(trace->events().size() == 1);
}

TEST_CASE("waits are measured by kind, on the first worker, from its first step on") {
  for (const int worker : {0, 1}) {
    CAPTURE(worker);
    WorkerClocks clocks(nullptr, nullptr, worker);
    int waits = 0;
    const auto wait = [&] {
      ++waits;
      pass_time();
    };
    clocks.wait(WaitClock::data, wait);
    CHECK(clocks.seconds(WaitClock::data) == 0);
    clocks.begin_step(0);
    clocks.wait(WaitClock::data, wait);
    CHECK((clocks.seconds(WaitClock::data) > 0) == (worker == 0));
    CHECK(clocks.seconds(WaitClock::barriers) == 0);
    clocks.wait(WaitClock::barriers, wait);
    CHECK((clocks.seconds(WaitClock::barriers) > 0) == (worker == 0));
    CHECK(waits == 3);
  }
}

}  // namespace
}  // namespace dpt
