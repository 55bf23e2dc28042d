// Loads libdptrain_cuda.so. The program itself links nothing of CUDA, so it starts everywhere.
#pragma once

#include <string>
#include <vector>

#include "backend/cuda/interface/cuda_module.h"

namespace dpt::cuda {

// What was found of the module, loaded at the first call; by any thread.
struct LoadedModule {
  CudaModule* module = nullptr;
  std::string path;
  std::vector<std::string> tried;  // what is wrong with each place
};
const LoadedModule& loaded_module();

// Throws Error{device} with the reason and what to do where there is none.
CudaModule& cuda_module();

// Why no GPU can be used here, and what to install; empty: one can. Where there is a driver this
// starts CUDA, which does not survive a fork: a process that will fork calls survey_gpus().
std::string why_no_gpu();

// Whether the machine has a GPU of NVIDIA's, as the kernel's list of PCI devices says: such a run
// on a CPU may be a mistake.
bool has_nvidia_gpu(const std::string& pci_devices = "/sys/bus/pci/devices");

struct GpuSurvey {
  int count = 0;             // that CUDA shows this process
  std::string problem;       // why none can be used; empty: at least one can
  std::string nccl_problem;  // why they can't sum by NCCL
};
// Starts CUDA in this process, and does not look for NCCL.
GpuSurvey gpus_of_this_process();
// Finds out in a child. REQUIRES: called from a process of one thread. Errors: Error{rank}.
GpuSurvey survey_gpus();

}  // namespace dpt::cuda
