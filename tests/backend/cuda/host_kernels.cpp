#include "backend/cuda/host_kernels.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "backend/cuda/kernels/all.h"

namespace dpt::cuda {
namespace {

template <class F>
void in_order(int64_t count, ThreadOrder order, F f) {
  if (order == ThreadOrder::forward) {
    for (int64_t i = 0; i < count; ++i) f(i);
    return;
  }
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  if (order == ThreadOrder::reverse)
    std::ranges::reverse(indices);
  else
    std::ranges::shuffle(indices, std::minstd_rand(7));
  for (const int64_t i : indices) f(i);
}

// Blocks come in the order, too. What shared memory holds at first no kernel may rely on.
template <class K>
void run(const void* kernel, int64_t count, ThreadOrder order) {
  const K& k = *static_cast<const K*>(kernel);
  if constexpr (BlockKernel<K>) {
    using Shared = typename K::Shared;
    alignas(Shared) std::byte memory[sizeof(Shared)];
    auto* shared = reinterpret_cast<Shared*>(memory);
    in_order(count, order, [&](int64_t b) {
      std::memset(memory, 0xff, sizeof memory);  // nan, in each floating type
      HostBlock<Shared> block(b, K::kThreads, order, *shared);
      k(block);
    });
  } else {
    in_order(count, order, [&](int64_t i) { k(i); });
  }
}

template <class K>
void touches(const void* kernel, int64_t count, TouchVisitor& visitor) {
  static_cast<const K*>(kernel)->touches(visitor, count);
}

template <class... K>
std::vector<HostKernel> row(KernelList<K...>) {
  return {{kernel_name<K>(), sizeof(K), run<K>, touches<K>}...};
}
template <class... List>
std::vector<std::vector<HostKernel>> rows(KernelLists<List...>) {
  return {row(List{})...};
}

}  // namespace

const HostKernel& host_kernel(KernelId id) {
  static const auto all = rows(AllKernels{});
  return all.at(id.list).at(id.index);
}

}  // namespace dpt::cuda
