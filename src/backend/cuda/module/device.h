// A GPU through the CUDA runtime and its libraries.
#pragma once

#include <memory>

#include "backend/cuda/interface/device_api.h"

namespace dpt::cuda {

DeviceProperties properties_of(int index);  // does not initialize the GPU
std::unique_ptr<DeviceApi> open_runtime_device(int index);

}  // namespace dpt::cuda
