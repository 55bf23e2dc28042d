// Identifies the set of own kernels of a build. Only include it where it is compared: every file
// that includes this header computes it.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/cuda/kernels/all.h"

namespace dpt::cuda {

namespace detail {

template <class... Kernel>
consteval uint64_t mix(uint64_t hash, KernelList<Kernel...>) {
  const auto add = [&](std::string_view name, size_t bytes) {
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    hash = (hash ^ bytes) * 0x100000001b3;
  };
  (add(kernel_name<Kernel>(), sizeof(Kernel)), ...);
  return hash;
}

template <class... List>
consteval uint64_t fingerprint(KernelLists<List...>) {
  uint64_t hash = 0xcbf29ce484222325;
  ((hash = mix(hash, List{})), ...);
  return hash;
}

}  // namespace detail

// FNV-1a hash of the names and sizes of all kernels.
inline constexpr uint64_t kKernelFingerprint = detail::fingerprint(AllKernels{});

}  // namespace dpt::cuda
