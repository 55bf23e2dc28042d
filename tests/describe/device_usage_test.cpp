// What `dptrain plan` says of a model on several devices, and what a run of it then does.
#include "describe/device_usage.h"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/units.h"
#include "comm/workers.h"
#include "describe/gantt.h"
#include "engine/trace.h"
#include "paths.h"
#include "session/memory.h"
#include "train/run_memory.h"
#include "train/run_spec.h"
#include "train/trainer.h"

namespace dpt {
namespace {

// A session of a shipped spec.
struct Opened {
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics diagnostics;
  std::unique_ptr<const Session> session;
  explicit Opened(const std::string& name, const std::vector<std::string>& overrides = {}) {
    Spec spec = load_spec(source_file("configs/") + name + ".yaml", overrides, registries(), files,
                          diagnostics);
    if (diagnostics.ok()) session = make_session(std::move(spec), {}, diagnostics);
  }
};

TEST_CASE("the schedule of a pipeline as a picture in text") {
  const Opened toy("pipe_toy", {"parallel.pipeline.chunks=4"});
  REQUIRE_MESSAGE(toy.session, toy.diagnostics.render());
  const Timing timing = predicted_timing(toy.session->model, toy.session->plan);
  CHECK(
      gantt_text(toy.session->plan.schedule, timing) ==
      "  device 0   |0====1====..........0#####2===......1####3====.....2#####..........3####|\n"
      "  device 1   |.....0====0#########1=====1#########2====2#########3=====3#########.....|\n");
  const std::string svg = gantt_svg(toy.session->plan.schedule, timing);
  size_t boxes = 0;
  for (size_t at = svg.find("<title>"); at != svg.npos; at = svg.find("<title>", at + 1)) ++boxes;
  CHECK(boxes == 16);
}

TEST_CASE("what devices hold is what a run takes for them, to the byte") {
  for (const char* name : {"split_devices", "pipe_toy", "deep_mlp"}) {
    CAPTURE(name);
    const Opened opened(name, {"cores=1"});
    REQUIRE_MESSAGE(opened.session, opened.diagnostics.render());
    const Session& s = *opened.session;
    const Buffers::Sizes& sizes = s.layout.buffers;
    double activations = 0, weights = 0, states = 0, gradients = 0;
    for (const DeviceUse& use : device_uses(s)) {
      activations += use.activations, weights += use.weights;
      states += use.states, gradients += use.gradients;
    }
    // Buffers begin at cache lines: at most one for each parameter is lost.
    const double lost = 64.0 * static_cast<double>(s.model.graph.parameters.size());
    CHECK(activations == static_cast<double>(s.layout.arenas.bytes));
    CHECK(weights <= 4.0 * static_cast<double>(sizes.weights));
    CHECK(weights >= 4.0 * static_cast<double>(sizes.weights) - lost);
    CHECK(states >= (4.0 * static_cast<double>(sizes.trainable) - lost) * sizes.states);
    const double stored = 4.0 * static_cast<double>(sizes.stored) * sizes.shards;
    CHECK(gradients >= stored - lost * sizes.shards);
    // Of later chunks workers have some rows of a gradient at a time (rows_of_tile), or a small one
    // as a whole.
    const double aside =
        s.batches.train->accumulate() > 1 ? 260.0 * kKiB * s.devices.topology.total_workers() : 0;
    CHECK(gradients <= stored + aside);
  }
}

TEST_CASE("a net too large for one device is refused with the numbers, and trains when split") {
  const Opened whole("deep_mlp", {"parallel=single", "cores=1"});
  CHECK_FALSE(whole.session);
  const std::string text = whole.diagnostics.render();
  CHECK_MESSAGE(text.find("device 0 would need ") != text.npos, text);
  CHECK_MESSAGE(text.find("but memory_limit is 50 MiB") != text.npos, text);
  CHECK(Opened("deep_mlp").session);
  double kept[2] = {};
  for (const bool again : {false, true})
    for (const DeviceUse& use :
         device_uses(*Opened("deep_mlp", {again ? "parallel.pipeline.checkpoint=always"
                                                : "parallel.pipeline.checkpoint=never"})
                          .session))
      kept[again] += use.activations;
  // One block's activations of eight are there at a time, beside the inputs of chunks in flight.
  CHECK(kept[1] < 0.75 * kept[0]);
}

TEST_CASE("a trace shows the schedule that was planned, each part after what it waits for") {
  const Opened opened("pipe_toy", {"steps=5", "parallel.pipeline.chunks=4", "cores=1"});
  REQUIRE(opened.session);
  const Session& s = *opened.session;
  RunMemory memory(s);
  const std::span<Trace> traces = memory.make_traces();
  RankState state(s, memory.buffers(), memory.team(), 0, memory.fill());
  run_workers(memory.team(), 0, [&](int worker) {
    train_worker(state, worker, {.trace = &traces[static_cast<size_t>(worker)]});
  });
  std::map<std::vector<int>, TraceEvent> done;
  for (size_t device = 0; device < 2; ++device) {
    std::vector<StageOp> ops;
    for (const TraceEvent& e : traces[device].events()) {
      CHECK(e.begin <= e.end);
      if (e.op != PlanOp::run || e.part == Part::loss) continue;
      const bool backward = e.part == Part::backward;
      if (e.step == 3) ops.push_back({e.stage, e.chunk, backward});
      if (e.step == 3) done[{backward, e.stage, e.chunk}] = e;
    }
    CHECK(ops == s.plan.schedule[device]);
  }
  for (int chunk = 0; chunk < 4; ++chunk) {
    CHECK(done.at({0, 0, chunk}).end <= done.at({0, 1, chunk}).begin);
    CHECK(done.at({0, 1, chunk}).end <= done.at({1, 1, chunk}).begin);
    CHECK(done.at({1, 1, chunk}).end <= done.at({1, 0, chunk}).begin);
  }
  const std::string json = chrome_trace(traces, s.devices.topology);
  CHECK(json.starts_with("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"));
  CHECK(json.find("\"name\": \"replica 0, device 1, core 0\"") != json.npos);
  CHECK(json.find("\"name\": \"backward 3\"") != json.npos);
  for (const char* step : {"sum_loss", "decide", "update", "barrier", "record", "load"})
    CHECK(json.find(fmt::format("\"name\": \"{}\"", step)) != json.npos);
}

}  // namespace
}  // namespace dpt
