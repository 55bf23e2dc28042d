// Units of bytes, and the boundaries at which memory begins.
#pragma once

#include <cstddef>

namespace dpt {

// A size is `64 * kMiB`; a message shows `bytes / kMiB`, or `static_cast<double>(bytes) / kMiB`.
inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = 1024 * kKiB;
inline constexpr size_t kGiB = 1024 * kMiB;

inline constexpr size_t kCacheLine = 64;
// What different threads write is this far apart: the hardware fetches cache lines in pairs.
inline constexpr size_t kDestructiveInterference = 2 * kCacheLine;
// Tensors, and the buffers that hold them, begin at a multiple of it.
inline constexpr size_t kTensorAlignment = kCacheLine;

inline constexpr size_t kPage = 4 * kKiB;
inline constexpr size_t kHugePage = 2 * kMiB;

// The next multiple of `to`. REQUIRES: it fits; sizes that come from a spec are Checked. Inline
// always, as files that are compiled for one instruction set include this header.
[[gnu::always_inline]] constexpr size_t rounded_up(size_t bytes, size_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace dpt
