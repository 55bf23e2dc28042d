// NCCL, loaded when a run first needs it.
#pragma once

#include <memory>
#include <string>

#include "backend/cuda/device_api.h"
#include "backend/cuda/libraries.h"

namespace dpt::cuda {

const FoundLibrary& nccl_library();  // looked for at the first call
std::string nccl_version();          // "2.28.9"; empty where it is not there

CommunicatorId new_nccl_id();
// Of the calling thread's GPU. Returns once all ranks have joined.
std::unique_ptr<Communicator> join_nccl(const CommunicatorId& id, int rank, int ranks,
                                        const WhileWaiting& waiting);

}  // namespace dpt::cuda
