#include "engine/trace.h"

#include <algorithm>

#include <fmt/format.h>

namespace dpt {
namespace {

// What kind of work a step is: the color in viewers.
std::string_view category_of(const TraceEvent& e) {
  switch (e.op) {
    case PlanOp::load:
    case PlanOp::load_targets:
      return "load";
    case PlanOp::barrier:
    case PlanOp::wait:
      return "wait";
    case PlanOp::run:
      return e.part == Part::backward ? "backward" : e.part == Part::loss ? "loss" : "forward";
    case PlanOp::update:
      return "update";
    default:
      return "exchange";
  }
}

// The step's name in the plan, "forward 2" for parts of micro-batches.
std::string title(const TraceEvent& e) {
  const std::string name = name_of(PlanStep{.op = e.op, .quantity = e.quantity, .part = e.part});
  const bool part = e.op == PlanOp::run && (e.part == Part::forward || e.part == Part::backward);
  return part ? fmt::format("{} {}", name, e.chunk) : name;
}

}  // namespace

std::string chrome_trace(std::span<const Trace> workers, const Topology& topology) {
  double first = 1e300;
  for (const Trace& t : workers)
    if (!t.events().empty()) first = std::min(first, t.events().front().begin);
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  for (int w = 0; w < std::ssize(workers); ++w) {
    out += fmt::format(
        R"({}{{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": "replica {}, device {}, core {}"}}}})",
        w == 0 ? "" : ",\n", topology.rank_of(w), w, topology.replica(w), topology.device_of(w),
        w % topology.workers_per_device);
    for (const TraceEvent& e : workers[static_cast<size_t>(w)].events())
      out += fmt::format(
          R"(,
{{"ph": "X", "name": "{}", "cat": "{}", "pid": {}, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, "args": {{"step": {}, "stage": {}, "chunk": {}}}}})",
          title(e), category_of(e), topology.rank_of(w), w, 1e6 * (e.begin - first),
          1e6 * (e.end - e.begin), e.step + 1, e.stage, e.chunk);
  }
  return out + "\n]}\n";
}

}  // namespace dpt
