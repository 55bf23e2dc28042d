// The entry point of libdptrain_cuda.so.
#include <dlfcn.h>
#include <fmt/format.h>

#include "backend/cuda/interface/cuda_module.h"
#include "backend/cuda/kernels/all.h"
#include "backend/cuda/kernels/fingerprint.h"
#include "backend/cuda/module/check.h"
#include "backend/cuda/module/communicator.h"
#include "backend/cuda/module/device.h"
#include "backend/cuda/module/dnn_plan.h"
#include "base/count.h"
#include "base/fail.h"
#include "base/version.h"

namespace dpt::cuda {
namespace {

// The file from which a function was loaded.
template <class F>
std::string file_of(F* function) {
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(function), &info) ? info.dli_fname : "";
}

class RuntimeModule final : public CudaModule {
 public:
  std::string build() const override {
    return fmt::format("CUDA {}, {} own kernels for compute {}", cuda_version(CUDART_VERSION),
                       kernel_count(AllKernels{}), DPT_CUDA_ARCHS);
  }

  std::string nccl_problem() override { return cuda::nccl_problem(); }
  std::vector<LibraryReport> libraries() override {
    std::vector<LibraryReport> out = cuda_libraries();
    for (LibraryReport& l : out) {
      if (l.name == "CUDA runtime") l.path = file_of(&cudaRuntimeGetVersion);
      if (l.name == "cuBLASLt") l.path = file_of(&cublasLtGetVersion);
      if (l.name == "cuDNN") {
        l.version = Dnn::instance().version();
        l.problem = Dnn::instance().problem();
      }
      if (l.name == "NCCL" && l.problem.empty()) l.problem = cuda::nccl_problem();
    }
    return out;
  }

  std::vector<DeviceProperties> devices() override {
    std::vector<DeviceProperties> out;
    for (int i = 0, count = device_count(); i < count; ++i) out.push_back(properties_of(i));
    return out;
  }

  std::unique_ptr<DeviceApi> open(int index) override {
    const int count = device_count();
    if (index < 0 || index >= count)
      fail(Fault::device, "device cuda:{} does not exist: CUDA finds {}, numbered from 0", index,
           counted(count, "GPU"));
    return open_runtime_device(index);
  }

 private:
  static int device_count() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaErrorNoDevice) {
      cudaGetLastError();
      return 0;
    }
    if (status != cudaSuccess) {
      cudaGetLastError();
      fail(Fault::device, "{}", driver_problem(status));
    }
    return count;
  }

  static std::string driver_problem(cudaError_t status) {
    const std::string wanted = cuda_version(CUDART_VERSION);
    int driver = 0;
    switch (status) {
      case cudaErrorInsufficientDriver:
        cudaDriverGetVersion(&driver);
        if (driver == 0)
          return fmt::format(
              "the NVIDIA driver is missing or not running; install a driver for CUDA {}", wanted);
        return fmt::format(
            "the NVIDIA driver supports CUDA {} at most, but CUDA {} is needed; install a newer "
            "driver",
            cuda_version(driver), wanted);
      case cudaErrorSystemDriverMismatch:
        return "the NVIDIA driver's libcuda.so.1 and its kernel module have different versions; "
               "reboot after a driver update, and in a container use the host's libcuda.so.1";
      default:
        return fmt::format(
            "cudaGetDeviceCount: {} ({}); if nvidia-smi fails too, reboot or reinstall the NVIDIA "
            "driver",
            cudaGetErrorString(status), cudaGetErrorName(status));
    }
  }

  template <class... List>
  static size_t kernel_count(KernelLists<List...>) {
    return (List::kSize + ...);
  }
};

}  // namespace
}  // namespace dpt::cuda

extern "C" __attribute__((visibility("default"))) const dpt::cuda::ModuleEntry*
dptrain_cuda_module() {
  static dpt::cuda::RuntimeModule module;
  static const dpt::cuda::ModuleEntry entry{
      .version = dpt::version(), .kernels = dpt::cuda::kKernelFingerprint, .module = &module};
  return &entry;
}
