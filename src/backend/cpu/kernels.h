// The CPU's kernels, best first, the plain loops last: `compile` takes the first that does not
// refuse. Every row is single-threaded; the machine's cores share the batch instead.
#pragma once

#include <span>
#include <vector>

#include "graph/kernel.h"

namespace dpt {

std::span<const KernelType> cpu_kernels();        // what runs are compiled with
std::span<const KernelType> reference_kernels();  // the operators' own plain loops, for every query

// The rows of one file each.
std::vector<KernelType> linear_kernels();
std::vector<KernelType> attention_kernels();
std::vector<KernelType> batch_norm_kernels();
std::vector<KernelType> half_kernels();
std::vector<KernelType> elementwise_kernels();
std::vector<KernelType> image_kernels();
std::vector<KernelType> gemm_convolution_kernels();
std::vector<KernelType>
onednn_kernels();  // these two: empty where dptrain was built without oneDNN
std::vector<KernelType> onednn_convolution_kernels();

}  // namespace dpt
