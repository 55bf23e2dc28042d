// The kernels of GPUs, best first: `compile` takes the first that does not refuse. `refuses` needs
// no GPU; preparing and running need a current DeviceContext (context.h). run() enqueues and
// returns.
#pragma once

#include <span>
#include <vector>

#include "graph/kernel.h"

namespace dpt {

std::span<const KernelType> cuda_kernels();

namespace cuda {

// The implementations of one file each.
std::vector<KernelType> pointwise_rows();
std::vector<KernelType> copy_rows();
std::vector<KernelType> image_rows();
std::vector<KernelType> pool_rows();
std::vector<KernelType> batch_norm_rows();
std::vector<KernelType> norm_rows();
std::vector<KernelType> row_norm_rows();
std::vector<KernelType> attention_rows();
std::vector<KernelType> loss_rows();
std::vector<KernelType> vector_loss_rows();
std::vector<KernelType> product_rows();
std::vector<KernelType> convolution_rows();

}  // namespace cuda
}  // namespace dpt
