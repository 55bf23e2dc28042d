// The time of a step: composed from costs, and measured.
#include "report/step_time.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "base/machine.h"
#include "data/folder.h"
#include "train/run_memory.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 96, shape: [1, 6, 6]}}
  transforms: [to_tensor]
  batch_size: 24
model: [flatten, {linear: 16}, batch_norm1d, relu, {linear: 16}, tanh, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.1}
cores: 1
)";

StepCosts costs_of(std::vector<double> forward, std::vector<double> backward) {
  return {.at_once = 1,
          .load = 1,
          .forward = std::move(forward),
          .backward = std::move(backward),
          .loss = 2,
          .norm = 5,
          .update = 7,
          .whole = 40,
          .barrier = 0.5,
          .kernels = {}};
}

TEST_CASE("a step is the slowest worker's work, the update, and barriers") {
  const auto single = session_of(kSpec, {});
  const StepTime alone = predict_step(*single, costs_of({10}, {20}));
  CHECK(alone.compute == 40);
  CHECK(alone.update == 12);
  CHECK(alone.barriers == 0);  // one worker
  CHECK(alone.total() == 52);
  CHECK(alone.bubble == 0);
  // Two barriers, and one more at each sync point of batch norm over the replica's two workers.
  const auto two = session_of(kSpec, {"cores=2"});
  CHECK(predict_step(*two, costs_of({10}, {20})).barriers ==
        0.5 * (two->plan.barriers(1) + two->plan.sync_points()));
  CHECK(two->plan.sync_points() > 0);
  // dp: the workers of one device compute the loss, while the others wait.
  const auto dp = session_of(kSpec, {"parallel=dp", "devices=2"});
  CHECK(predict_step(*dp, costs_of({10}, {20})).compute == 1 + 10 + 2 + 20);
}

TEST_CASE("with stages a step takes as long as the schedule") {
  const auto s = session_of(
      kSpec, {"parallel={pipeline: {stages: 2, chunks: 2, schedule: gpipe}}", "parallel.cut=null"});
  REQUIRE(s->plan.schedule.size() == 2);
  // A chunk: (1 + 4) / 2 and (4 + 2) / 2 forward, 4 and 4 backward.
  const StepTime t = predict_step(*s, costs_of({4, 4}, {8, 8}));
  // Device 0: 2.5 2.5 . . . 4 4; device 1: . 3 3 4 4: 2.5 + 3 + 3 + 4 + 4, then 4.
  CHECK(t.compute == doctest::Approx(2.5 + 3 + 3 + 4 + 4 + 4));
  CHECK(t.bubble > 0);
  CHECK(t.bubble < t.compute);
}

StepCosts measured(const Session& s, size_t cores) {
  const RunMemory memory(s);
  memory.fill();
  std::vector<int> pins = usable_cores();
  pins.resize(std::min(pins.size(), cores));
  return measure_step_costs(s, memory.buffers(), pins);
}

TEST_CASE("every kernel of a step is measured, and each piece takes time") {
  for (const char* mode : {"single", "ddp", "dp"}) {
    CAPTURE(mode);
    const auto s =
        session_of(kSpec, {std::string("parallel=") + mode, mode[0] == 'd' ? "devices=2" : "seed=1",
                           "clip_grad_norm=1", "accumulate=2"});
    const StepCosts costs = measured(*s, 2);
    CHECK(costs.load > 0);
    CHECK(costs.loss > 0);
    CHECK(costs.norm > 0);
    CHECK(costs.update > 0);
    CHECK(costs.forward[0] > 0);
    CHECK(costs.backward[0] > 0);
    CHECK(costs.whole >= costs.forward[0]);
    const Program& program = s->model.programs.begin()->second;
    const auto computes = [](const Instruction& i) { return !i.sync_point; };
    const auto count = [&](const std::vector<Instruction>& part) {
      return static_cast<size_t>(std::ranges::count_if(part, computes));
    };
    CHECK(costs.kernels.size() == count(program.prologue) + count(program.forward) +
                                      count(program.loss) + count(program.backward));
    CHECK(std::ranges::is_sorted(costs.kernels, std::ranges::greater(), &KernelCost::seconds));
    CHECK(std::ranges::any_of(costs.kernels, [](const KernelCost& k) {
      return k.op == "linear" && k.flops > 0 && k.seconds > 0 && !k.layer.empty();
    }));
  }
}

TEST_CASE("the workers of a pipeline are measured in groups of as many as there are cores") {
  const auto s = session_of(kSpec, {"parallel={pipeline: {stages: 3, chunks: 2}}"});
  const StepCosts costs = measured(*s, 1);
  CHECK(costs.at_once == 1);
  CHECK(costs.barrier == 0);
  REQUIRE(costs.forward.size() == 3);
  for (size_t stage = 0; stage < 3; ++stage) {
    CAPTURE(stage);
    CHECK(costs.forward[stage] > 0);
    CHECK(costs.backward[stage] > 0);
  }
  CHECK(predict_step(*s, costs).bubble > 0);
}

TEST_CASE("of several hosts the pieces of one are measured") {
  for (const int host : {0, 1})
    for (const char* clip : {"clip_grad_norm=null", "clip_grad_norm=1"}) {
      CAPTURE(host);
      CAPTURE(clip);
      const SessionQuery query{
          .world = 2, .hosts = {{.first_ranks = {0, 1}, .host = host, .cores_per_rank = 1}}};
      std::unique_ptr<const Session> s;
      const std::string errors =
          errors_of_session(kSpec, {"parallel=ddp", "devices=1", "reproducible=8", clip}, query, s);
      REQUIRE_MESSAGE(s, errors);
      const StepCosts costs = measured(*s, 2);
      CHECK(costs.at_once == 1);
      CHECK(costs.forward[0] > 0);
      CHECK(costs.backward[0] > 0);
      CHECK(costs.sum_own > 0);
      CHECK(costs.update > 0);
      CHECK(costs.after_backward() >= costs.sum_own + costs.update);
      CHECK(has(step_time_text(*s), "what hosts exchange takes no time here"));
    }
}

TEST_CASE("the text names the step, its rate and what machine it assumes") {
  const auto s = session_of(kSpec, {"parallel=ddp", "devices=12"});
  const std::string text = step_time_text(*s);
  for (const char* words :
       {"step time, from kernels measured on ", "  load ", "  sum and update ", "2 barriers ",
        "  predicted: ", " samples/s, ", "assumes a core for each of the 12 workers",
        "slowest kernels", "GFLOP/s"})
    CHECK_MESSAGE(text.find(words) != std::string::npos, words, " is not in ", text);
}

TEST_CASE("--time does not measure GPUs") {
  const auto s = session_of(kSpec, {"device=cuda"}, true);
  try {
    step_time_text(*s);
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::device);
    CHECK(std::string(e.what()) ==
          "--time measures kernels of CPUs only; for GPUs use `dptrain bench`, which trains a few "
          "steps, or write `device: cpu`");
  }
}

}  // namespace
}  // namespace dpt
