// libdptrain_cuda.so of a machine whose GPUs are fakes: with it the program itself runs on GPUs, as
// processes and ranks of launchers. Environment: DPT_FAKE_GPUS, how many (1);
// CUDA_VISIBLE_DEVICES, which of them a process is shown; DPT_FAKE_DRIVER, as other_module.cpp
// says; DPT_FAKE_LIBRARIES=0: the libraries have no algorithms.
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "backend/cuda/fake_stream.h"
#include "backend/cuda/fake_world.h"
#include "backend/cuda/interface/cuda_module.h"
#include "backend/cuda/kernels/fingerprint.h"
#include "base/fail.h"
#include "base/version.h"

namespace dpt::cuda {
namespace {

class FakeModule final : public CudaModule {
 public:
  std::string build() const override { return "GPUs that are none, for tests"; }
  std::string nccl_problem() override { return ""; }
  std::vector<LibraryReport> libraries() override {
    return {{.name = "NCCL", .version = "0", .path = "nowhere", .needed = false}};
  }
  std::vector<DeviceProperties> devices() override {
    start();
    if (const char* driver = std::getenv("DPT_FAKE_DRIVER"); driver && std::atoi(driver) < 13000)
      fail(Fault::device, "the driver is too old");
    std::vector<DeviceProperties> out;
    for (const int gpu : shown()) {
      out.push_back(FakeApi({.index = gpu}).properties());
      out.back().index = static_cast<int>(out.size()) - 1;
    }
    return out;
  }
  std::unique_ptr<DeviceApi> open(int index) override {
    start();
    const char* const libraries = std::getenv("DPT_FAKE_LIBRARIES");
    return std::make_unique<FakeApi>(
        FakeApi::Settings{.libraries = libraries == nullptr || std::atoi(libraries) != 0,
                          .index = shown().at(static_cast<size_t>(index))});
  }

 private:
  // As CUDA, which does not survive a fork once it has started.
  void start() {
    if (process_ == 0) process_ = getpid();
    if (process_ != getpid()) violation("CUDA is used behind a fork");
  }
  static std::vector<int> shown() {
    const char* const all = std::getenv("DPT_FAKE_GPUS");
    const char* const some = std::getenv("CUDA_VISIBLE_DEVICES");
    std::vector<int> out;
    for (int gpu = 0; gpu < (all ? std::atoi(all) : 1); ++gpu)
      if (!some || fmt::format(",{},", some).find(fmt::format(",{},", gpu)) != std::string::npos)
        out.push_back(gpu);
    return out;
  }
  pid_t process_ = 0;
};

}  // namespace
}  // namespace dpt::cuda

extern "C" __attribute__((visibility("default"))) const dpt::cuda::ModuleEntry*
dptrain_cuda_module() {
  static dpt::cuda::FakeModule module;
  static const dpt::cuda::ModuleEntry entry{
      .version = dpt::version(), .kernels = dpt::cuda::kKernelFingerprint, .module = &module};
  return &entry;
}
