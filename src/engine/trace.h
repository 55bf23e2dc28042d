// What workers really did, for chrome://tracing and Perfetto: `dptrain train --trace FILE`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/clock.h"
#include "parallel/topology.h"

namespace dpt {

struct TraceEvent {
  enum class Kind : uint8_t { feed, forward, loss, backward, exchange, update, wait };
  Kind kind = Kind::forward;
  int32_t stage = 0, chunk = 0;  // of forward and backward
  int64_t step = 0;
  double begin = 0, end = 0;  // seconds
};

// One worker's; lies in memory that processes share. The first kMost events of a run are kept.
// Thread: its worker's own.
class Trace {
 public:
  static constexpr size_t kMost = 8192;

  void add(TraceEvent::Kind kind, int stage, int chunk, int64_t step, double begin) {
    if (count_ == kMost) return;
    events_[count_++] = {kind, stage, chunk, step, begin, now_s()};
  }
  std::span<const TraceEvent> events() const { return {events_, count_}; }

 private:
  size_t count_ = 0;
  TraceEvent events_[kMost];
};

// Chrome's trace format, microseconds from the first event on: a process for each rank, a row for
// each worker.
std::string chrome_trace(std::span<const Trace> workers, const Topology& who);

}  // namespace dpt
