// A library that is dptrain's module of another build.
#include "backend/cuda/cuda_module.h"

extern "C" const dpt::cuda::ModuleEntry* dptrain_cuda_module() {
  static const dpt::cuda::ModuleEntry entry{.version = "dptrain 0.0.1"};
  return &entry;
}
