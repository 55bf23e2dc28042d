#include "backend/cuda/interface/nccl_environment.h"

#include <cstdlib>
#include <string_view>

#include "base/fail.h"

namespace dpt::cuda {

// The header requires that the process has one thread.
// NOLINTBEGIN(concurrency-mt-unsafe)
void set_nccl_environment() {
  const char* const blocking = std::getenv("NCCL_COMM_BLOCKING");
  if (blocking != nullptr && std::string_view(blocking) != "0")
    fail(Fault::device,
         "NCCL_COMM_BLOCKING={} is set in the environment, so a run could hang when a GPU fails; "
         "unset it",
         blocking);
  constexpr const char* kSettings[][2] = {{"NCCL_SOCKET_IFNAME", "lo"}, {"NCCL_RAS_ENABLE", "0"},
                                          {"NCCL_IB_DISABLE", "1"},     {"NCCL_NET_PLUGIN", "none"},
                                          {"NCCL_GRAPH_REGISTER", "0"}, {"NCCL_NVLS_ENABLE", "0"},
                                          {"NCCL_RUNTIME_CONNECT", "0"}};
  for (const auto& [name, value] : kSettings) setenv(name, value, 0);
}
// NOLINTEND(concurrency-mt-unsafe)

}  // namespace dpt::cuda
