#include "backend/cuda/implementations/kernels.h"

namespace dpt {

std::span<const KernelType> cuda_kernels() {
  static const std::vector<KernelType> all = [] {
    std::vector<KernelType> out;
    for (auto* rows :
         {&cuda::product_rows, &cuda::convolution_rows, &cuda::pointwise_rows, &cuda::copy_rows,
          &cuda::image_rows, &cuda::pool_rows, &cuda::batch_norm_rows, &cuda::norm_rows,
          &cuda::row_norm_rows, &cuda::attention_rows, &cuda::loss_rows, &cuda::vector_loss_rows})
      for (KernelType& row : rows()) {
        // A program for a GPU has one shard, so nothing depends on how results vary with the
        // number of samples.
        row.by_sample = true;
        out.push_back(row);
      }
    return out;
  }();
  return all;
}

}  // namespace dpt
