// In place of dnn_plan.cpp where cudnn_frontend's headers were not there.
#include "backend/cuda/module/dnn_plan.h"
#include "base/fail.h"

namespace dpt::cuda {
namespace {
[[noreturn]] void missing() { fail(Fault::device, "{}", Dnn::instance().problem()); }
}  // namespace

Dnn& Dnn::instance() {
  static Dnn dnn;
  return dnn;
}
Dnn::Dnn() = default;
std::string Dnn::problem() const {
  return "libdptrain_cuda.so was built without cudnn_frontend's headers; fetch them with "
         "tools/cudnn_frontend.sh, then: meson setup --reconfigure build && ninja -C build";
}
std::string Dnn::version() const { return ""; }
void* Dnn::make_handle() { missing(); }
void Dnn::destroy_handle(void*) noexcept {}
void Dnn::set_stream(void*, void*) { missing(); }
std::unique_ptr<DnnPlan> Dnn::plan(void*, const std::string&, const DnnConvolution&) { missing(); }
std::unique_ptr<DnnPlan> Dnn::plan(void*, const std::string&, const DnnNorm&) { missing(); }
std::unique_ptr<DnnPlan> Dnn::plan(void*, const std::string&, const DnnPool&) { missing(); }
std::unique_ptr<DnnPlan> Dnn::plan(void*, const std::string&, const DnnAttention&) { missing(); }

}  // namespace dpt::cuda
