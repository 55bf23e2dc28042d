#include "engine/gpu/stages.h"

#include "engine/gpu/stage_links.h"
#include "engine/gpu/stage_threads.h"

namespace dpt {

using cuda::MemoryKind;

DeviceStages::DeviceStages(const Session& session, cuda::DeviceContext& context, DeviceTeam& gpus)
    : session_(session),
      context_(context),
      gpus_(gpus),
      activations_(
          context.api, MemoryKind::device,
          Arenas::bytes_on(session, gpus.device()) / static_cast<size_t>(session.who.replicas())),
      verdict_(context.api, MemoryKind::device, sizeof(cuda::StepState)),
      turns_(static_cast<size_t>(session.turns())) {}

std::vector<int> DeviceStages::own() const {
  std::vector<int> out;
  for (int s = 0; s <= last(); ++s)
    if (has(s)) out.push_back(s);
  return out;
}

std::unique_ptr<DeviceStages> make_device_stages(const Session& session,
                                                 cuda::DeviceContext& context, DeviceTeam& gpus) {
  if (session.stages_apart()) return std::make_unique<DeviceLinks>(session, context, gpus);
  return std::make_unique<DeviceThreads>(session, context, gpus);
}

}  // namespace dpt
