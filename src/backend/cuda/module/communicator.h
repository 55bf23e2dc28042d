// NCCL, loaded when a run first needs it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "backend/cuda/interface/device_api.h"

namespace dpt::cuda {

std::string nccl_problem();  // why it cannot be used; empty: it can

CommunicatorId new_nccl_id();
// Joins with the calling thread's GPU; returns when all ranks have joined. most_blocks: see
// DeviceApi::join.
std::unique_ptr<Communicator> join_nccl(const CommunicatorId& id, int rank, int ranks,
                                        const WhileWaiting& waiting, int most_blocks);
// Aborts all of them at once; null entries are ignored.
void abort_nccl(std::span<Communicator* const> communicators) noexcept;

}  // namespace dpt::cuda
