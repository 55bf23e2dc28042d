// The kernels of the CPU, best first and the reference implementations last; `compile` takes the
// first that does not refuse. Every kernel runs on one thread: the cores of a machine share the
// batch instead.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/bf16_products.h"
#include "graph/kernel.h"

namespace dpt {

// What runs are compiled with.
std::span<const KernelType> cpu_kernels(Bf16Products products = Bf16Products::automatic);
std::span<const KernelType> reference_kernels();  // the reference implementations only

// An entry of a hand-written kernel, which computes a sample's results alike in every batch.
KernelType simd_row(std::string_view op, std::string (*refuses)(const KernelQuery&),
                    std::unique_ptr<Kernel> (*prepare)(const KernelQuery&), bool rounds = false);

// The implementations of one file each. The two of oneDNN are empty if dptrain was built without
// it.
std::vector<KernelType> linear_kernels(Bf16Products products);
std::vector<KernelType> attention_kernels(Bf16Products products);
std::vector<KernelType> batch_norm_kernels();
std::vector<KernelType> row_norm_kernels();
std::vector<KernelType> half_kernels();
std::vector<KernelType> elementwise_kernels();
std::vector<KernelType> softmax_kernels();
std::vector<KernelType> ctc_kernels();
std::vector<KernelType> gated_kernels();
std::vector<KernelType> movement_kernels();
std::vector<KernelType> image_kernels();
std::vector<KernelType> resize_kernels();
std::vector<KernelType> gemm_convolution_kernels(Bf16Products products);
std::vector<KernelType> onednn_kernels();
std::string onednn_version();  // "2.6.0"; empty: built without
std::vector<KernelType> onednn_convolution_kernels(Bf16Products products);

}  // namespace dpt
