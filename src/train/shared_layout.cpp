#include "train/shared_layout.h"

#include "base/checked.h"
#include "engine/gpu/team.h"
#include "engine/gpu/transport.h"

namespace dpt {

TeamShape team_shape(const Devices& devices) {
  const Topology& topology = devices.topology;
  return {.ranks = static_cast<int>(topology.ranks_of_host(topology.host).count()),
          .workers_per_rank = topology.workers_per_rank()};
}

SharedLayout::SharedLayout(const Session& s, size_t decision_bytes)
    : decision(Team::bytes(team_shape(s.devices))),
      gpus(decision + decision_bytes),
      buffers(gpus + (s.devices.on_gpu() ? GpuTeam::bytes(s.devices.topology.total_workers()) : 0) +
              gpu_transport_bytes(s.devices)),
      bytes((Checked(buffers) + Buffers::bytes(s.layout.buffers)).size()) {}

Team SharedLayout::team(const SharedMemory& memory, const Session& s,
                        const TeamSettings& settings) const {
  return Team::create(memory.span().first(decision), team_shape(s.devices), settings);
}

}  // namespace dpt
