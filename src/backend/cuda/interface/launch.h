// Launches own kernels. Separate from device_api.h, since this header includes all kernels and most
// users of that header launch none.
#pragma once

#include <cstdint>

#include "backend/cuda/interface/device_api.h"
#include "backend/cuda/kernels/all.h"

namespace dpt::cuda {

// Enqueues an own kernel for `count` elements or blocks; count <= 0: does nothing.
template <class K>
requires ElementKernel<K> || BlockKernel<K>
void launch(Stream& stream, const K& kernel, int64_t count) {
  if (count > 0) stream.launch({kernel_id<K>, count, &kernel, sizeof kernel});
}

}  // namespace dpt::cuda
