#include "backend/cuda/context.h"

#include "base/error.h"

namespace dpt::cuda {
namespace {

thread_local DeviceContext* now = nullptr;

}  // namespace

DeviceContext& DeviceContext::current() {
  require(now != nullptr, "a kernel of a GPU is prepared for a DeviceContext");
  return *now;
}

DeviceContext::Use::Use(DeviceContext& context) : before_(now) { now = &context; }
DeviceContext::Use::~Use() { now = before_; }

}  // namespace dpt::cuda
