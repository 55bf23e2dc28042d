// NCCL's settings for ranks that all run on one machine.
#pragma once

namespace dpt::cuda {

// Sets environment variables that NCCL reads when it is first called, in this process and those
// that it forks; what the user has set stays. With them NCCL
// - opens no port but on the loopback interface and looks for no other machine (NCCL_SOCKET_IFNAME,
//   NCCL_RAS_ENABLE, NCCL_IB_DISABLE, NCCL_NET_PLUGIN),
// - registers no buffers while a step is captured, for which every rank waits for every other one
//   without noticing that one has died (NCCL_GRAPH_REGISTER),
// - sums in an order that is the same in each run: not in the switch (NCCL_NVLS_ENABLE),
// - connects all GPUs when a communicator is joined, so that its memory is taken then, and no two
//   communicators connect at the same time later (NCCL_RUNTIME_CONNECT).
//
// REQUIRES: called while the process has one thread. Throws Error{device} for NCCL_COMM_BLOCKING,
// which takes away how a rank that is missing is given up.
void set_nccl_environment();

}  // namespace dpt::cuda
