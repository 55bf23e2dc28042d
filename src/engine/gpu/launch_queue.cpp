#include "engine/gpu/launch_queue.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace dpt {

using cuda::MemoryKind;

namespace {

constexpr size_t kFormulaBytes = 96;  // the largest formula fits

}  // namespace

LaunchQueue::LaunchQueue(cuda::DeviceContext& context, int shard, size_t groups,
                         WaitForGpu wait_for, bool decides)
    : context_(context),
      shard_(static_cast<size_t>(shard)),
      groups_(groups),
      wait_for_(std::move(wait_for)),
      table_(context.api, MemoryKind::device, sizeof(Table) + kFormulas * groups * kFormulaBytes),
      reports_(context.api, MemoryKind::device, kMostSteps * sizeof(cuda::StepReport)),
      decisions_(context.api, MemoryKind::device, decides ? sizeof(Decisions) : 0) {
  for (Launch& l : launches_) {
    l.table = cuda::DeviceBuffer(context.api, MemoryKind::pinned, table_.bytes());
    l.reports = cuda::DeviceBuffer(context.api, MemoryKind::pinned, reports_.bytes());
    l.decisions = cuda::DeviceBuffer(context.api, MemoryKind::pinned, 2 * decisions_.bytes());
    l.completed = context.api.make_event();
    l.steps.resize(kMostSteps);
  }
}

size_t LaunchQueue::together(size_t nodes) {
  return std::bit_floor(std::clamp<size_t>(kMostNodes / nodes, 1, kMostSteps));
}

void LaunchQueue::submit(std::span<const Step> steps, int64_t first_update,
                         std::span<const OptimizerStep> formulas, const Decisions& own) {
  require(!full() && steps.size() <= kMostSteps && formulas.size() <= kFormulas * groups_,
          "a launch slot is free");
  Launch& launch = launches_[next_];
  next_ = (next_ + 1) % kMost;
  auto& table = *reinterpret_cast<Table*>(launch.table.data());
  table.first_update = first_update;
  launch.count = steps.size();
  for (size_t i = 0; i < steps.size(); ++i) {
    Step& mine = launch.steps[i];
    mine = steps[i];
    mine.input.rows = &mine.rows;
    table.entries[i] = {.step = mine.input.number,
                        .position = mine.rows.micro[0][shard_].rows.begin,
                        .divisor = mine.divisor};
  }
  std::byte* const begin = launch.table.data() + sizeof(Table);
  size_t bytes = 0;
  for (const OptimizerStep& step : formulas)
    std::visit(
        [&](const auto& s) {
          const auto formula = rounded<float>(s);
          static_assert(sizeof formula <= kFormulaBytes);
          std::memcpy(begin + bytes, &formula, sizeof formula);
          bytes += sizeof formula;
        },
        step);
  context_.stream.copy(table_.data(), launch.table.data(), sizeof(Table) + bytes);
  if (decisions_.bytes() > 0) {
    std::memcpy(launch.decisions.data(), &own, sizeof own);
    context_.stream.copy(decisions_.data(), launch.decisions.data(), sizeof own);
  }
  submitted_.push_back(&launch);
  steps_ += launch.count;
}

void LaunchQueue::enqueue_reports(const double* decisions) {
  Launch& launch = *submitted_.back();
  if (decisions)
    context_.stream.copy(launch.decisions.data() + sizeof(Decisions), decisions, sizeof(Decisions));
  context_.stream.copy(launch.reports.data(), reports_.data(),
                       launch.count * sizeof(cuda::StepReport));
  context_.stream.record(*launch.completed);
}

std::optional<LaunchQueue::Completed> LaunchQueue::complete(bool wait) {
  Launch& launch = *submitted_.front();
  if (wait)
    wait_for_(*launch.completed);
  else if (!launch.completed->passed())
    return {};
  submitted_.pop_front();
  steps_ -= launch.count;
  Decisions decisions;
  if (decisions_.bytes() > 0)
    std::memcpy(&decisions, launch.decisions.data() + sizeof decisions, sizeof decisions);
  return Completed{std::span<const Step>(launch.steps).first(launch.count),
                   reinterpret_cast<const cuda::StepReport*>(launch.reports.data()), decisions};
}

}  // namespace dpt
