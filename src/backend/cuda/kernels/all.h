// All lists of own kernels. Their order determines the kernels' ids.
#pragma once

#include "backend/cuda/kernels/attention.h"
#include "backend/cuda/kernels/augment.h"
#include "backend/cuda/kernels/basic.h"
#include "backend/cuda/kernels/copy.h"
#include "backend/cuda/kernels/gather.h"
#include "backend/cuda/kernels/images.h"
#include "backend/cuda/kernels/losses.h"
#include "backend/cuda/kernels/norms.h"
#include "backend/cuda/kernels/own_kernel.h"
#include "backend/cuda/kernels/pointwise.h"
#include "backend/cuda/kernels/products.h"
#include "backend/cuda/kernels/softmax.h"
#include "backend/cuda/kernels/sums.h"
#include "backend/cuda/kernels/update.h"
#include "backend/cuda/kernels/uses.h"
#include "backend/cuda/kernels/vector_losses.h"

namespace dpt::cuda {

template <class... List>
struct KernelLists {};
using AllKernels =
    KernelLists<BasicKernels, ActivationKernels, Bf16ActivationKernels, F16ActivationKernels,
                PointwiseKernels, CopyKernels, ImageKernels, SumKernels, NormKernels,
                SoftmaxKernels, LossKernels, ProductKernels, UpdateKernels, GatherKernels,
                AugmentKernels, AttentionKernels, VectorLossKernels, UseKernels>;

namespace detail {

// Index of K in a list; the list's size if it is not in it.
template <class K, class... Kernel>
consteval size_t position(KernelList<Kernel...>) {
  size_t at = 0;
  (void)((std::is_same_v<K, Kernel> || (++at, false)) || ...);
  return at;
}

template <class K, class... List>
consteval KernelId find(KernelLists<List...>) {
  size_t list = 0, index = 0;
  const bool found = (((index = position<K>(List{})) < List::kSize || (++list, false)) || ...);
  if (!found) throw "this kernel stands in no list of all.h";
  return {static_cast<uint16_t>(list), static_cast<uint16_t>(index)};
}

}  // namespace detail

template <class K>
inline constexpr KernelId kernel_id = detail::find<K>(AllKernels{});

}  // namespace dpt::cuda
