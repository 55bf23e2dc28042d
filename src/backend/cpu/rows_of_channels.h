// Helpers for kernels on channels_last images: rows of channels, in f32 or in 16 bits of bf16.
#pragma once

#include <algorithm>
#include <vector>

#include "backend/cpu/simd/batch_norm.h"
#include "backend/cpu/support.h"

namespace dpt {

// T: float, or uint16_t for images of bf16.
template <class T>
const BatchNormOf<T>& channel_simd() {
  static const BatchNormKernels& kernels = batch_norm_simd(simd_kernels().isa);
  if constexpr (sizeof(T) == 2) {
    return kernels.bf16;
  } else {
    return kernels;
  }
}

template <class T>
T* image(const TensorView& v) {
  return reinterpret_cast<T*>(v.data);
}

// Calls make(T()) with the type of the images, of which the first input is one.
template <class F>
std::unique_ptr<Kernel> with_image_type(const KernelQuery& q, F make) {
  return q.in[0].dtype == DType::bf16 ? make(uint16_t()) : make(float());
}

// Arrays with a number in double for each channel.
class ChannelTables {
 public:
  ChannelTables(size_t channels, size_t tables)
      : channels_(channels),
        stride_((channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock),
        numbers_(tables * stride_) {}
  double* operator[](size_t table) { return numbers_.data() + table * stride_; }
  void clear(size_t table) { std::fill_n((*this)[table], channels_, 0.0); }

 private:
  size_t channels_, stride_;
  std::vector<double> numbers_;
};

}  // namespace dpt
