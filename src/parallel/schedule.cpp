#include "parallel/schedule.h"

#include <algorithm>

#include "base/error.h"

namespace dpt {
namespace {

int devices_of(const std::vector<int>& device) { return *std::ranges::max_element(device) + 1; }

// Appends the forward or backward parts of a chunk, stage by stage.
void add_all(PipelineSchedule& out, const std::vector<int>& device, int chunk, bool backward) {
  const int stages = static_cast<int>(device.size());
  for (int i = 0; i < stages; ++i) {
    const int s = backward ? stages - 1 - i : i;
    out[static_cast<size_t>(device[static_cast<size_t>(s)])].push_back(
        {.stage = s, .chunk = chunk, .backward = backward});
  }
}

PipelineSchedule chunk_by_chunk(const std::vector<int>& device, int chunks) {
  PipelineSchedule out(static_cast<size_t>(devices_of(device)));
  for (int c = 0; c < chunks; ++c)
    for (const bool backward : {false, true}) add_all(out, device, c, backward);
  return out;
}

PipelineSchedule fill_and_drain(const std::vector<int>& device, int chunks) {
  PipelineSchedule out(static_cast<size_t>(devices_of(device)));
  for (const bool backward : {false, true})
    for (int c = 0; c < chunks; ++c) add_all(out, device, c, backward);
  return out;
}

// After `ahead` forward parts, alternates between a forward and a backward part.
std::vector<StageOp> in_turn(const std::vector<StageOp>& forward,
                             const std::vector<StageOp>& backward, size_t ahead) {
  std::vector<StageOp> out;
  ahead = std::min(ahead, forward.size());
  for (size_t i = 0; i < ahead; ++i) out.push_back(forward[i]);
  for (size_t i = 0; i < backward.size(); ++i) {
    if (ahead + i < forward.size()) out.push_back(forward[ahead + i]);
    out.push_back(backward[i]);
  }
  return out;
}

// Chunks pass through the devices in groups of as many chunks as there are devices.
PipelineSchedule one_forward_one_backward(const std::vector<int>& device, int chunks) {
  const int devices = devices_of(device), stages = static_cast<int>(device.size());
  const int stages_per_device = stages / devices;  // stages per device
  require(stages % devices == 0 && (stages_per_device == 1 || chunks % devices == 0),
          "interleaved stages go round evenly");
  PipelineSchedule out;
  for (int d = 0; d < devices; ++d) {
    std::vector<StageOp> forward, backward;
    const int group = stages_per_device == 1 ? chunks : devices;
    for (int first = 0; first < chunks; first += group)
      for (int t = 0; t < stages_per_device; ++t)
        for (int c = first; c < first + group; ++c) {
          forward.push_back({.stage = t * devices + d, .chunk = c, .backward = false});
          backward.push_back(
              {.stage = (stages_per_device - 1 - t) * devices + d, .chunk = c, .backward = true});
        }
    const int behind = devices - 1 - d;
    const int ahead =
        stages_per_device == 1 ? behind : 2 * behind + (stages_per_device - 1) * devices;
    out.push_back(in_turn(forward, backward, static_cast<size_t>(ahead)));
  }
  return out;
}

}  // namespace

PipelineSchedule pipeline_schedule(ScheduleKind kind, const std::vector<int>& device, int chunks) {
  if (kind == ScheduleKind::sequential) return chunk_by_chunk(device, chunks);
  if (kind == ScheduleKind::gpipe) return fill_and_drain(device, chunks);
  return one_forward_one_backward(device, chunks);
}

int in_flight(const PipelineSchedule& schedule, int stage, int chunks) {
  int now = 0, most = 0;
  for (const auto& ops : schedule)
    for (const StageOp& op : ops)
      if (op.stage == stage && op.chunk < chunks)
        most = std::max(most, now += op.backward ? -1 : 1);
  return most;
}

std::vector<StageOp> topological_order(const PipelineSchedule& schedule) {
  size_t stages = 0;
  for (const auto& ops : schedule)
    for (const StageOp& op : ops) stages = std::max(stages, static_cast<size_t>(op.stage) + 1);
  const Timing timing = simulate(schedule, std::vector(stages, 1.0), std::vector(stages, 2.0));
  struct Begun {
    double at;
    StageOp op;
  };
  std::vector<Begun> all;
  for (size_t d = 0; d < schedule.size(); ++d)
    for (size_t i = 0; i < schedule[d].size(); ++i)
      all.push_back({timing.spans[d][i].begin, schedule[d][i]});
  // The sort is correct because an operation begins strictly later than those it depends on.
  std::ranges::stable_sort(all, {}, &Begun::at);
  std::vector<StageOp> out;
  for (const Begun& b : all) out.push_back(b.op);
  return out;
}

Timing simulate(const PipelineSchedule& schedule, const std::vector<double>& forward,
                const std::vector<double>& backward) {
  const size_t stages = forward.size(), devices = schedule.size();
  Timing out;
  out.spans.resize(devices);
  // [forward, backward][stage][chunk]: when it ends; negative: not yet known.
  std::vector<std::vector<double>> done[2];
  size_t chunks = 0;
  for (const auto& ops : schedule)
    for (const StageOp& op : ops) chunks = std::max(chunks, static_cast<size_t>(op.chunk) + 1);
  for (auto& d : done) d.assign(stages, std::vector<double>(chunks, -1));
  const auto ready = [&](const StageOp& op) -> double {
    const auto s = static_cast<size_t>(op.stage), c = static_cast<size_t>(op.chunk);
    if (!op.backward) return s == 0 ? 0 : done[0][s - 1][c];
    return s + 1 == stages ? done[0][s][c] : done[1][s + 1][c];
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t d = 0; d < devices; ++d)
      while (out.spans[d].size() < schedule[d].size()) {
        const StageOp& op = schedule[d][out.spans[d].size()];
        const double from = ready(op);
        if (from < 0) break;
        const auto s = static_cast<size_t>(op.stage);
        const double begin = std::max(from, out.spans[d].empty() ? 0 : out.spans[d].back().end);
        const double end = begin + (op.backward ? backward : forward)[s];
        done[op.backward ? 1 : 0][s][static_cast<size_t>(op.chunk)] = end;
        out.spans[d].push_back({begin, end});
        out.total = std::max(out.total, end);
        moved = true;
      }
  }
  double busy = 0;
  for (size_t d = 0; d < devices; ++d) {
    require(out.spans[d].size() == schedule[d].size(), "no device waits for ever");
    for (const Timing::Span& s : out.spans[d]) busy += s.end - s.begin;
  }
  out.bubble = out.total > 0 ? 1 - busy / (out.total * static_cast<double>(devices)) : 0;
  return out;
}

}  // namespace dpt
