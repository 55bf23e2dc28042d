// NCCL settings for ranks that all run on one machine.
#pragma once

namespace dpt::cuda {

// Sets environment variables that NCCL reads at its first call, in this process and its children.
// Variables that the user has set are not changed. With these settings NCCL
// - opens no port except on the loopback interface and looks for no other machine
//   (NCCL_SOCKET_IFNAME, NCCL_RAS_ENABLE, NCCL_IB_DISABLE, NCCL_NET_PLUGIN);
// - does not register buffers during a capture, where each rank would wait for all others without
//   noticing that one has died (NCCL_GRAPH_REGISTER);
// - sums in the same order in every run: not in the switch (NCCL_NVLS_ENABLE);
// - connects all GPUs when a communicator is joined. Then all of its memory is allocated at that
//   time, and no two communicators connect at the same time later (NCCL_RUNTIME_CONNECT).
//
// REQUIRES: the process has one thread. Throws Error{device} if NCCL_COMM_BLOCKING is set, since a
// missing rank could then not be given up.
void set_nccl_environment();

}  // namespace dpt::cuda
