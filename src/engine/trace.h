// A timeline of what the workers did (`dptrain train --trace FILE`), for chrome://tracing and
// Perfetto.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/clock.h"
#include "graph/program/plan.h"
#include "parallel/topology.h"

namespace dpt {

struct TraceEvent {
  PlanOp op = PlanOp::run;
  Part part = Part::forward;
  Quantity quantity = Quantity::none;
  int32_t stage = 0, chunk = 0;
  int64_t step = 0;
  double begin = 0, end = 0;  // seconds
};

// One worker's events, in memory that processes share. Keeps the first kMost events of a run and
// ignores the rest. Thread: its worker's.
class Trace {
 public:
  static constexpr size_t kMost = 8192;

  // The step of the plan that began at `begin` and ends now. chunk: the micro-batch.
  void add(const PlanStep& s, int chunk, int64_t step, double begin) {
    if (count_ == kMost) return;
    events_[count_++] = {.op = s.op,
                         .part = s.part,
                         .quantity = s.quantity,
                         .stage = s.stage,
                         .chunk = chunk,
                         .step = step,
                         .begin = begin,
                         .end = now_s()};
  }
  std::span<const TraceEvent> events() const { return {events_, count_}; }

 private:
  size_t count_ = 0;
  TraceEvent events_[kMost];
};

// All workers' events as Chrome's trace format (JSON): a process for each rank, a thread for each
// worker, times in microseconds since the first event.
std::string chrome_trace(std::span<const Trace> workers, const Topology& topology);

}  // namespace dpt
