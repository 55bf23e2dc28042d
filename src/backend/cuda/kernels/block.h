// Thread blocks.
//
// Note [phases]: a kernel that works in blocks is a sequence of phases:
//
//   auto sum = block.template per_thread<float>();   one per thread, kept between phases
//   block.phase([&](int t, Shared& s) { s.sums[t] = sum[t] = ...; });
//   const bool any = block.agreed([&](const Shared& s) { return s.any[0]; });
//
// All threads run a phase and then pass a barrier. In a phase a thread may read what other threads
// wrote in earlier phases, and may write only what no other thread reads or writes in this phase.
// Shared memory is accessible only in phases and in agreed(), which reads a value that is the same
// for all threads, for conditions and loops around phases. So no barrier can be forgotten. The
// remaining error, a thread that reads what another one writes in the same phase, is found by the
// tests: the host runs the threads of a phase in different orders, which must give the same bits.
#pragma once

#include <cstdint>

#include "backend/cuda/kernels/own_kernel.h"

#ifdef __CUDACC__

namespace dpt::cuda {

// The block of the calling thread.
template <class Shared>
class DeviceBlock {
 public:
  __device__ explicit DeviceBlock(Shared& shared) : shared_(shared) {}
  __device__ int64_t index() const { return blockIdx.x; }

  template <class F>
  __device__ void phase(F f) {
    f(static_cast<int>(threadIdx.x), shared_);
    __syncthreads();
  }

  template <class F>
  __device__ auto agreed(F f) {
    const auto value = f(static_cast<const Shared&>(shared_));
    __syncthreads();
    return value;
  }

  template <class T>
  struct PerThread {
    T value{};
    __device__ T& operator[](int) { return value; }
  };
  template <class T>
  __device__ PerThread<T> per_thread() const {
    return {};
  }

 private:
  Shared& shared_;
};

}  // namespace dpt::cuda

#else

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace dpt::cuda {

enum class ThreadOrder { forward, reverse, shuffled };

// A block on the host, whose threads run one after another.
template <class Shared>
class HostBlock {
 public:
  HostBlock(int64_t index, int threads, ThreadOrder order, Shared& shared)
      : index_(index), order_(order), threads_(static_cast<size_t>(threads)), shared_(shared) {
    std::iota(threads_.begin(), threads_.end(), 0);
    if (order == ThreadOrder::reverse) std::reverse(threads_.begin(), threads_.end());
  }
  int64_t index() const { return index_; }

  template <class F>
  void phase(F f) {
    if (order_ == ThreadOrder::shuffled) std::shuffle(threads_.begin(), threads_.end(), random_);
    for (const int t : threads_) f(t, shared_);
  }

  template <class F>
  auto agreed(F f) {
    return f(static_cast<const Shared&>(shared_));
  }

  template <class T>
  struct PerThread {
    std::vector<T> values;
    T& operator[](int t) { return values[static_cast<size_t>(t)]; }
  };
  template <class T>
  PerThread<T> per_thread() const {
    return {std::vector<T>(threads_.size())};
  }

 private:
  int64_t index_;
  ThreadOrder order_;
  std::vector<int> threads_;
  Shared& shared_;
  std::minstd_rand random_{1};
};

}  // namespace dpt::cuda

#endif
