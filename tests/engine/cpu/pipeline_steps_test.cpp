// One training step of a pipeline's two workers, without the rest of the executor.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "engine/cpu/pipeline.h"
#include "engine/cpu/two_workers.h"
#include "engine/some_weights.h"

namespace dpt {
namespace {

// Clipping stores all gradients, which a worker alone would partly compute in the update.
const std::vector<std::string> kModel = {
    "model=[flatten, {linear: 6}, tanh, {linear: 5}, tanh, {linear: 10}]", "clip_grad_norm=1"};

std::vector<std::string> pipeline(const std::string& schedule) {
  std::vector<std::string> how = kModel;
  how.push_back(
      fmt::format("parallel={{pipeline: {{stages: 2, chunks: 2, schedule: {}}}}}", schedule));
  return how;
}

// Runs the step of batch `batch` up to its gradients.
void run_step(TwoWorkers& two, int64_t batch, uint64_t number) {
  const auto step = two.one().step(batch, number);
  two.run([&](StageRunner& r) {
    r.worker.clocks.begin_step(number);
    r.losses.begin_step(step->rows.samples);
    r.gradients.begin_step();
    CpuPipeline(r.worker, r.bindings, r.sync_points, r.input, r.losses, r.gradients, r.posts)
        .run(step->input);
  });
}

// The same on one device, micro-batch by micro-batch, without a plan.
void run_step(OneWorker& one, StageRunner& r, int64_t batch, uint64_t number) {
  const auto step = one.step(batch, number);
  r.losses.begin_step(step->rows.samples);
  for (size_t m = 0; m < step->rows.micro.size(); ++m) {
    Binding* const b = r.bindings.find(0, step->rows.micro[m], program_kind(*one.session, m), m);
    REQUIRE(b);
    r.input.load(*b, 0, step->input, m);
    b->run(Part::forward);
    r.losses.run(0, m, step->input);
    b->run(Part::backward);
  }
}

bool is_of(const TraceEvent& e, const PlanStep& s) {
  return e.op == s.op && e.part == s.part && e.stage == s.stage && e.chunk == s.chunk;
}

TEST_CASE("each worker of a pipeline executes its device's list in order") {
  for (const char* schedule : {"gpipe", "1f1b", "interleaved_1f1b"}) {
    CAPTURE(schedule);
    const auto traces = std::make_unique<std::array<Trace, 2>>();
    TwoWorkers two(kTinySpec, pipeline(schedule), {&(*traces)[0], &(*traces)[1]});
    run_step(two, 0, 0);
    run_step(two, 1, 1);
    for (size_t device = 0; device < 2; ++device) {
      CAPTURE(device);
      const Plan::Steps& list = two.session().plan.stages[device];
      REQUIRE(list.size() > 6);
      const auto events = (*traces)[device].events();
      REQUIRE(events.size() == 2 * list.size());
      for (size_t i = 0; i < events.size(); ++i) {
        CAPTURE(i);
        CHECK(is_of(events[i], list[i % list.size()]));
        CHECK(events[i].step == static_cast<int64_t>(i / list.size()));
      }
    }
  }
}

// The operation that a wait names has posted when the wait ends, so its `record` has begun.
TEST_CASE("a wait of the list ends after the other worker's operation, in every step") {
  const auto traces = std::make_unique<std::array<Trace, 2>>();
  TwoWorkers two(kTinySpec, pipeline("1f1b"), {&(*traces)[0], &(*traces)[1]});
  run_step(two, 0, 0);
  run_step(two, 1, 1);
  int waits = 0;
  for (size_t device = 0; device < 2; ++device)
    for (const TraceEvent& wait : (*traces)[device].events()) {
      if (wait.op != PlanOp::wait) continue;
      ++waits;
      const auto others = (*traces)[1 - device].events();
      const auto record = std::ranges::find_if(others, [&](const TraceEvent& e) {
        return e.op == PlanOp::record && e.step == wait.step && e.stage == wait.stage &&
               e.chunk == wait.chunk && e.part == wait.part;
      });
      REQUIRE(record != others.end());
      CHECK(record->begin <= wait.end);
    }
  CHECK(waits >= 8);  // two steps of two chunks, forward and backward
}

TEST_CASE("gradients and losses of a pipeline's step are those of one device, to the bit") {
  std::vector<std::string> how = kModel;
  how.emplace_back("accumulate=2");
  OneWorker one(kTinySpec, how);
  StageRunner alone{one.worker};
  set_some_weights(*one.session, one.buffers);
  for (const char* schedule : {"gpipe", "1f1b", "interleaved_1f1b"}) {
    CAPTURE(schedule);
    TwoWorkers two(kTinySpec, pipeline(schedule));
    set_some_weights(two.session(), two.buffers());
    const size_t stored = one.buffers.sizes().stored;
    REQUIRE(two.buffers().sizes().stored == stored);
    REQUIRE(two.session().model.layout.offset == one.session->model.layout.offset);
    uint64_t number = 0;
    for (const int64_t batch : {0, 2, 1}) {  // of 8, 4 and 8 samples
      CAPTURE(batch);
      run_step(one, alone, batch, number);
      run_step(two, batch, number);
      const float* const a = one.buffers.gradient(0);
      const float* const b = two.buffers().gradient(0);
      CHECK(std::any_of(a, a + stored, [](float g) { return g != 0; }));
      CHECK(std::equal(a, a + stored, b));
      CHECK(one.buffers.result(number, 0).loss > 1);  // of 10 classes, nothing is learned yet
      CHECK(two.buffers().result(number, 0).loss == one.buffers.result(number, 0).loss);
      ++number;
    }
  }
}

}  // namespace
}  // namespace dpt
