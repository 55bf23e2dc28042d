// Own kernels as the host runs them, by their ids: the twin of the module's entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/cuda/kernels/block.h"
#include "backend/cuda/kernels/own_kernel.h"

namespace dpt::cuda {

// What a kernel says it uses.
struct Touched {
  const std::byte* begin;
  size_t bytes;
  bool writes;
  bool operator==(const Touched&) const = default;
};
struct TouchVisitor {
  std::vector<Touched> touched;
  template <class T>
  void reads(const T* p, int64_t n) {
    add(p, n, false);
  }
  template <class T>
  void writes(const T* p, int64_t n) {
    add(p, n, true);
  }

 private:
  template <class T>
  void add(const T* p, int64_t n, bool writes) {
    if (n > 0)
      touched.push_back(
          {reinterpret_cast<const std::byte*>(p), static_cast<size_t>(n) * sizeof(T), writes});
  }
};

struct HostKernel {
  std::string_view name;
  size_t bytes;
  void (*run)(const void* kernel, int64_t count, ThreadOrder order);
  void (*touches)(const void* kernel, int64_t count, TouchVisitor& visitor);
};

const HostKernel& host_kernel(KernelId id);

}  // namespace dpt::cuda
