// A library that is dptrain's module of another build, and stands in for NVIDIA's driver, which is
// for CUDA $DPT_FAKE_DRIVER (13000; 0: a stub), and for cuDNN without its parts.
#include <cstdlib>

#include "backend/cuda/interface/cuda_module.h"

extern "C" {

const dpt::cuda::ModuleEntry* dptrain_cuda_module() {
  static const dpt::cuda::ModuleEntry entry{.version = "dptrain 0.0.1"};
  return &entry;
}

int cuDriverGetVersion(int* version) {
  const char* const set = std::getenv("DPT_FAKE_DRIVER");
  *version = set ? std::atoi(set) : 13000;
  return *version > 0 ? 0 : 34;  // cudaErrorStubLibrary
}

size_t cudnnGetVersion() { return 90100; }
}
