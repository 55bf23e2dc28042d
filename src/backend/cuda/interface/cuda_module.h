// The interface of libdptrain_cuda.so, once it is loaded (load.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/interface/device_api.h"
#include "backend/cuda/interface/libraries.h"

namespace dpt::cuda {

class CudaModule {
 public:
  virtual ~CudaModule() = default;
  // Versions of the tools and GPU architectures it was built with.
  virtual std::string build() const = 0;
  // Opens every library, including the ones that it loads on demand.
  virtual std::vector<LibraryReport> libraries() = 0;
  virtual std::string nccl_problem() = 0;  // why NCCL cannot be used; empty: it can
  // The GPUs that CUDA shows this process. Throws Error{device} if the driver is missing or too
  // old.
  virtual std::vector<DeviceProperties> devices() = 0;
  // Throws Error{device} if there is no such GPU, or if no kernels were compiled for it.
  virtual std::unique_ptr<DeviceApi> open(int index) = 0;
};

// The module's entry point returns this. Loading checks it before it uses anything else of the
// module.
struct ModuleEntry {
  std::string version;   // of dptrain, with the compiler
  uint64_t kernels = 0;  // kKernelFingerprint
  CudaModule* module = nullptr;
};
using ModuleEntryFunction = const ModuleEntry*();
inline constexpr const char* kModuleEntryName = "dptrain_cuda_module";

}  // namespace dpt::cuda
