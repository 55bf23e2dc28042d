#include "engine/gpu/stages.h"

#include "engine/gpu/stage_links.h"
#include "engine/gpu/stage_threads.h"

namespace dpt {

using cuda::MemoryKind;

GpuStages::GpuStages(const Session& session, cuda::DeviceContext& context, GpuTeam& gpus)
    : session_(session),
      context_(context),
      gpus_(gpus),
      activations_(context.api, MemoryKind::device,
                   session.layout.arenas.bytes_on(gpus.device()) /
                       static_cast<size_t>(session.devices.topology.replicas())),
      decision_(context.api, MemoryKind::device, sizeof(cuda::StepState)),
      slot_count_(static_cast<size_t>(session.model.slot_count)) {}

std::vector<int> GpuStages::own() const {
  std::vector<int> out;
  for (int s = 0; s <= last(); ++s)
    if (has(s)) out.push_back(s);
  return out;
}

size_t gpu_decision_bytes() { return sizeof(cuda::StepState); }

std::unique_ptr<GpuStages> make_gpu_stages(const Session& session, cuda::DeviceContext& context,
                                           GpuTeam& gpus) {
  if (session.devices.stages_are_processes())
    return std::make_unique<StageLinks>(session, context, gpus);
  return std::make_unique<StageThreads>(session, context, gpus);
}

}  // namespace dpt
