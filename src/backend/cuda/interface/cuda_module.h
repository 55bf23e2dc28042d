// What libdptrain_cuda.so offers once it is loaded (load.h).
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
  virtual std::string build() const = 0;  // what it was built with and for
  // All are opened, with their parts.
  virtual std::vector<LibraryReport> libraries() = 0;
  virtual std::string nccl_problem() = 0;  // why it can't be used; empty: it can
  // GPUs that CUDA shows this process. Throws Error{device} where the driver is missing or too old.
  virtual std::vector<DeviceProperties> devices() = 0;
  // Throws Error{device} where there is no such GPU, or one that no kernel was compiled for.
  virtual std::unique_ptr<DeviceApi> open(int index) = 0;
};

// Loading calls this first, and nothing else where something is not as the program expects it.
struct ModuleEntry {
  std::string version;   // of dptrain, with the compiler
  uint64_t kernels = 0;  // kKernelFingerprint
  CudaModule* module = nullptr;
};
using ModuleEntryFunction = const ModuleEntry*();
inline constexpr const char* kModuleEntryName = "dptrain_cuda_module";

}  // namespace dpt::cuda
