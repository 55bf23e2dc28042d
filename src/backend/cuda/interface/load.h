// Loads libdptrain_cuda.so. The program does not link CUDA, so it starts on every machine.
#pragma once

#include <string>
#include <vector>

#include "backend/cuda/interface/cuda_module.h"

namespace dpt::cuda {

// The result of loading the module, which the first call does. Thread: any.
struct LoadedModule {
  CudaModule* module = nullptr;
  std::string path;
  std::vector<std::string> tried;  // each place, with its problem
};
const LoadedModule& loaded_module();

// Throws Error{device} with the reason and what to do if the module cannot be loaded.
CudaModule& cuda_module();

// Why no GPU can be used and what to install; empty: one can. If there is a driver, this
// initializes CUDA, which does not survive a fork: a process that will fork calls survey_gpus()
// instead.
std::string why_no_gpu();

// True if the kernel's list of PCI devices has an NVIDIA GPU: a run on CPUs may then be a mistake.
bool has_nvidia_gpu(const std::string& pci_devices = "/sys/bus/pci/devices");

struct GpuSurvey {
  int count = 0;             // GPUs that CUDA shows this process
  std::string problem;       // why none can be used; empty: at least one can
  std::string nccl_problem;  // why NCCL cannot be used; empty: it can
};
// Initializes CUDA in this process; does not look for NCCL.
GpuSurvey gpus_of_this_process();
// Finds out in a child process, including nccl_problem. REQUIRES: the process has one thread.
// Throws Error{rank}.
GpuSurvey survey_gpus();

}  // namespace dpt::cuda
