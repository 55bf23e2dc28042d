#include "backend/cuda/interface/nccl_environment.h"

#include <cstdlib>
#include <optional>
#include <string>

#include <doctest/doctest.h>

#include "base/fail.h"

namespace dpt::cuda {
namespace {

// What a variable was is back in the end.
class Variable {
 public:
  explicit Variable(const char* name) : name_(name) {
    if (const char* const value = std::getenv(name)) before_ = value;
    unsetenv(name);
  }
  ~Variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  void set(const char* value) const { setenv(name_, value, 1); }
  std::string value() const {
    const char* const now = std::getenv(name_);
    return now ? now : "unset";
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST_CASE("NCCL's settings for one machine leave what the user has set") {
  const Variable interface("NCCL_SOCKET_IFNAME"), ras("NCCL_RAS_ENABLE"), ib("NCCL_IB_DISABLE"),
      plugin("NCCL_NET_PLUGIN"), graph("NCCL_GRAPH_REGISTER"), nvls("NCCL_NVLS_ENABLE"),
      connect("NCCL_RUNTIME_CONNECT"), blocking("NCCL_COMM_BLOCKING");
  nvls.set("1");
  blocking.set("0");
  set_nccl_environment();
  CHECK(interface.value() == "lo");
  CHECK(ras.value() == "0");
  CHECK(ib.value() == "1");
  CHECK(plugin.value() == "none");
  CHECK(graph.value() == "0");
  CHECK(nvls.value() == "1");
  CHECK(connect.value() == "0");
  CHECK(blocking.value() == "0");
}

TEST_CASE("NCCL's settings for several machines name the interface, and allow fast networks") {
  const Variable interface("NCCL_SOCKET_IFNAME"), ras("NCCL_RAS_ENABLE"), ib("NCCL_IB_DISABLE"),
      plugin("NCCL_NET_PLUGIN"), graph("NCCL_GRAPH_REGISTER"), nvls("NCCL_NVLS_ENABLE"),
      connect("NCCL_RUNTIME_CONNECT"), blocking("NCCL_COMM_BLOCKING");
  set_nccl_environment_of_hosts("");
  CHECK(interface.value() == "unset");
  set_nccl_environment_of_hosts("eth1");
  CHECK(interface.value() == "=eth1");
  set_nccl_environment_of_hosts("eth2");  // what is set stays
  CHECK(interface.value() == "=eth1");
  CHECK(ib.value() == "unset");
  CHECK(plugin.value() == "unset");
  for (const Variable* off : {&ras, &graph, &nvls, &connect}) CHECK(off->value() == "0");
  blocking.set("1");
  CHECK_THROWS_AS(set_nccl_environment_of_hosts(""), Error);
}

TEST_CASE("NCCL_COMM_BLOCKING is refused") {
  const Variable blocking("NCCL_COMM_BLOCKING"), interface("NCCL_SOCKET_IFNAME");
  blocking.set("1");
  CHECK_THROWS_WITH_AS(set_nccl_environment(),
                       "NCCL_COMM_BLOCKING=1 is set in the environment, so a run could hang when a "
                       "GPU fails; unset it",
                       Error);
  CHECK(interface.value() == "unset");
}

}  // namespace
}  // namespace dpt::cuda
