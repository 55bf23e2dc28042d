// How bytes go from one GPU of a replica to another where they are of different processes: by NCCL,
// or by way of memory that the processes share (`backend: gloo`, and where stages share a GPU).
//
// Both may wait for the other side, NCCL on the GPU's stream and when two GPUs first meet, the
// other way on the host. Nobody waits for ever, since all sides come to what they have in common in
// the order of one list (stage_links.h), and use one stream.
#pragma once

#include <cstddef>
#include <memory>

#include "backend/cuda/interface/device_api.h"
#include "engine/gpu/team.h"
#include "session/session.h"

namespace dpt {

class DeviceCarrier {
 public:
  virtual ~DeviceCarrier() = default;
  // Each enqueues on the same stream. from, to: devices of the replica.
  virtual void send(cuda::Stream& stream, const std::byte* data, size_t bytes, int to) = 0;
  virtual void receive(cuda::Stream& stream, std::byte* data, size_t bytes, int from) = 0;
  // All devices: what lies at `data` on that device goes to the same memory of the others.
  virtual void broadcast(cuda::Stream& stream, std::byte* data, size_t bytes, int from) = 0;
  virtual void check() {}   // throws what went wrong
  virtual void finish() {}  // all workers. REQUIRES: all that was enqueued is done
  virtual cuda::Communicator* communicator() { return nullptr; }  // that it waits with, if any
};

// All workers; waits for the others. REQUIRES: session.stages_apart(); the references outlive it.
std::unique_ptr<DeviceCarrier> make_device_carrier(const Session& session, cuda::DeviceApi& api,
                                                   DeviceTeam& gpus);
// Of the memory that processes share: what all of a run need of DeviceTeam::room().
size_t device_carrier_bytes(const Session& session);

}  // namespace dpt
