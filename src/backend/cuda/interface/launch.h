// How own kernels are called. It knows all of them, device_api.h none: most that use that header
// call no kernel.
#pragma once

#include <cstdint>

#include "backend/cuda/interface/device_api.h"
#include "backend/cuda/kernels/all.h"

namespace dpt::cuda {

// Enqueues an own kernel for so many elements or blocks; none: does nothing.
template <class K>
requires ElementKernel<K> || BlockKernel<K>
void launch(Stream& stream, const K& kernel, int64_t count) {
  if (count > 0) stream.launch({kernel_id<K>, count, &kernel, sizeof kernel});
}

}  // namespace dpt::cuda
