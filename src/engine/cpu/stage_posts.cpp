#include "engine/cpu/stage_posts.h"

#include <algorithm>

namespace dpt {

uint32_t posts_until(const std::vector<StageOp>& ops, const StageOp& op) {
  return static_cast<uint32_t>(std::ranges::find(ops, op) - ops.begin()) + 1;
}

StagePosts::StagePosts(CpuWorker& worker)
    : worker_(worker),
      posted_(static_cast<size_t>(worker.session.devices.topology.devices_per_replica)) {}

void StagePosts::wait_for(const PlanStep& s) {
  const auto device = static_cast<size_t>(s.device);
  const uint32_t count =
      posted_[device] + posts_until(worker_.session.plan.schedule[device], s.stage_op());
  worker_.clocks.traced(s, s.chunk,
                        [&] { worker_.team.wait_for(worker_.on_device(s.device), count); });
  worker_.clocks.mark(PlanStepClock::waiting);
}

void StagePosts::end_step() {
  const PipelineSchedule& schedule = worker_.session.plan.schedule;
  for (size_t d = 0; d < schedule.size(); ++d)
    posted_[d] += static_cast<uint32_t>(schedule[d].size());
}

void StagePosts::wait_for_test(int stage, int64_t batch) {
  if (worker_.stages.has(stage)) return;
  const int device = worker_.stages.device_of(stage);
  worker_.team.wait_for(
      worker_.on_device(device),
      posted_[static_cast<size_t>(device)] +
          static_cast<uint32_t>(worker_.session.model.test_parts_until(stage, batch)));
}

void StagePosts::end_evaluation(int64_t batches) {
  const std::vector<int>& devices = worker_.session.model.graph.stage_device;
  for (size_t d = 0; d < posted_.size(); ++d)
    posted_[d] += static_cast<uint32_t>(batches) *
                  static_cast<uint32_t>(std::ranges::count(devices, static_cast<int>(d)));
}

}  // namespace dpt
