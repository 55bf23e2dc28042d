#include "backend/cuda/interface/context.h"

#include <fmt/format.h>

#include "base/count.h"
#include "base/error.h"

namespace dpt::cuda {
namespace {

thread_local DeviceContext* now = nullptr;

}  // namespace

DeviceContext& DeviceContext::current() {
  require(now != nullptr, "a kernel of a GPU is prepared for a DeviceContext");
  return *now;
}

std::vector<std::string> DeviceContext::not_as_planned() const {
  std::vector<std::string> out(reasons_.begin(), reasons_.end());
  if (fallbacks_ > 0)
    out.push_back(fmt::format(
        "{} of this GPU's programs {} dptrain's own instead of a library's; DPTRAIN_LOG_PLANS=FILE "
        "writes the algorithm of every operation",
        counted(fallbacks_, "kernel"), fallbacks_ == 1 ? "is" : "are"));
  return out;
}

DeviceContext::Use::Use(DeviceContext& context) : before_(now) { now = &context; }
DeviceContext::Use::~Use() { now = before_; }

}  // namespace dpt::cuda
