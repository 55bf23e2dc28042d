// Copies between GPUs of a replica that belong to different processes: by NCCL, or through shared
// memory of the host (`backend: gloo`, and stages that share a GPU).
//
// Either way a call may wait for the other side: NCCL on the GPU's stream (and on the host at the
// first call between two GPUs), the other way on the host. There is no deadlock, because all sides
// make their calls in the order of one list (Note [one list] in stage_links.h) and on one stream.
#pragma once

#include <cstddef>
#include <memory>

#include "backend/cuda/interface/device_api.h"
#include "engine/gpu/team.h"
#include "session/session.h"

namespace dpt {

class GpuTransport {
 public:
  virtual ~GpuTransport() = default;
  // Each call enqueues. Use the same stream for all. from, to, other GPUs: device indices in the
  // replica.
  virtual void send(cuda::Stream& stream, const std::byte* data, size_t bytes, int to) = 0;
  virtual void receive(cuda::Stream& stream, std::byte* data, size_t bytes, int from) = 0;
  // Called on all devices: copies `data` of device `from` to `data` of the others.
  virtual void broadcast(cuda::Stream& stream, std::byte* data, size_t bytes, int from) = 0;
  virtual void check() {}   // throws an error of an enqueued call
  virtual void finish() {}  // on all workers. REQUIRES: all enqueued calls are done
  virtual cuda::Communicator* communicator() { return nullptr; }  // null: none
};

// Called on all workers; waits for the others. REQUIRES: session.devices.stages_are_processes();
// the references outlive it.
std::unique_ptr<GpuTransport> make_gpu_transport(const Session& session, cuda::DeviceApi& api,
                                                 GpuTeam& gpus);
// Bytes of GpuTeam::extra_memory() that the transports of all workers use together.
size_t gpu_transport_bytes(const Devices& devices);

}  // namespace dpt
