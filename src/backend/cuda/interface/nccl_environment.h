// NCCL settings for the ranks of a run.
#pragma once

#include <string>

namespace dpt::cuda {

// Both functions set environment variables that NCCL reads at its first call, in this process and
// its children. Variables that the user has set are not changed. With these settings NCCL
// - opens no port for its status reports (NCCL_RAS_ENABLE);
// - does not register buffers during a capture, where each rank would wait for all others without
//   noticing that one has died (NCCL_GRAPH_REGISTER);
// - sums in the same order in every run: not in the switch (NCCL_NVLS_ENABLE);
// - connects all GPUs when a communicator is joined. Then all of its memory is allocated at that
//   time, and no two communicators connect at the same time later (NCCL_RUNTIME_CONNECT).
//
// REQUIRES: no other thread reads or writes the environment. Throws Error{device} if
// NCCL_COMM_BLOCKING is set, since a missing rank could then not be given up.

// For ranks that all run on one machine: NCCL opens ports on the loopback interface only and looks
// for no other machine (NCCL_SOCKET_IFNAME, NCCL_IB_DISABLE, NCCL_NET_PLUGIN).
void set_nccl_environment();

// For ranks on several machines: NCCL connects through this network interface, and carries data
// over it or over what NCCL finds that is faster, such as InfiniBand. interface: "eth0"; empty:
// NCCL chooses.
void set_nccl_environment_of_hosts(const std::string& interface);

}  // namespace dpt::cuda
