#include "engine/trace.h"

#include <algorithm>

#include <fmt/format.h>

namespace dpt {
namespace {

using Kind = TraceEvent::Kind;

constexpr std::string_view kNames[] = {"load",     "forward", "loss", "backward",
                                       "exchange", "update",  "wait"};

// "forward 2" for forward and backward passes, else the name of the kind.
std::string title(const TraceEvent& e) {
  const std::string_view name = kNames[static_cast<size_t>(e.kind)];
  const bool part = e.kind == Kind::forward || e.kind == Kind::backward;
  return part ? fmt::format("{} {}", name, e.chunk) : std::string(name);
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
          title(e), kNames[static_cast<size_t>(e.kind)], topology.rank_of(w), w,
          1e6 * (e.begin - first), 1e6 * (e.end - e.begin), e.step + 1, e.stage, e.chunk);
  }
  return out + "\n]}\n";
}

}  // namespace dpt
