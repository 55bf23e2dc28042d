#include "backend/cuda/interface/nccl_environment.h"

#include <cstdlib>
#include <string_view>

#include "base/fail.h"

namespace dpt::cuda {
namespace {

// The header requires that no other thread uses the environment.
// NOLINTBEGIN(concurrency-mt-unsafe)

void check_not_blocking() {
  const char* const blocking = std::getenv("NCCL_COMM_BLOCKING");
  if (blocking != nullptr && std::string_view(blocking) != "0")
    fail(Fault::device,
         "NCCL_COMM_BLOCKING={} is set in the environment, so a run could hang when a GPU fails; "
         "unset it",
         blocking);
}

void set(const char* name, const char* value) { setenv(name, value, 0); }

void set_for_all() {
  set("NCCL_RAS_ENABLE", "0");
  set("NCCL_GRAPH_REGISTER", "0");
  set("NCCL_NVLS_ENABLE", "0");
  set("NCCL_RUNTIME_CONNECT", "0");
}

// NOLINTEND(concurrency-mt-unsafe)

}  // namespace

void set_nccl_environment() {
  check_not_blocking();
  set_for_all();
  set("NCCL_SOCKET_IFNAME", "lo");
  set("NCCL_IB_DISABLE", "1");
  set("NCCL_NET_PLUGIN", "none");
}

void set_nccl_environment_of_hosts(const std::string& interface) {
  check_not_blocking();
  set_for_all();
  // "=": this name, not all that begin with it.
  if (!interface.empty()) set("NCCL_SOCKET_IFNAME", ("=" + interface).c_str());
}

}  // namespace dpt::cuda
