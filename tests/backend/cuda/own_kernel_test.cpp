#include "backend/cuda/kernels/own_kernel.h"

#include <array>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cuda/kernels/all.h"
#include "backend/cuda/kernels/block.h"

namespace dpt::cuda {
namespace {

constexpr std::array kOrders = {ThreadOrder::forward, ThreadOrder::reverse, ThreadOrder::shuffled};

TEST_CASE("a kernel's id is its index in the lists, its name that of its type") {
  CHECK(kernel_id<Fill<float>> == KernelId{0, 0});
  CHECK(kernel_id<SumRows> == KernelId{0, 1});
  CHECK(kernel_name<Fill<float>>() == "Fill<float>");
  CHECK(kernel_name<SumRows>() == "SumRows");
}

template <class K>
void run_block(const K& kernel, int64_t index, ThreadOrder order) {
  typename K::Shared shared{};
  HostBlock<typename K::Shared> block(index, K::kThreads, order, shared);
  kernel(block);
}

TEST_CASE("the threads of a block may come in any order") {
  std::vector<float> x(2 * 700);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1 / static_cast<float>(i + 1);
  for (const int64_t row : {0, 1}) {
    double expected = 0;
    for (size_t i = 0; i < 700; ++i) expected += static_cast<double>(x[row * 700 + i]);
    std::array<double, 3> sums{};
    for (size_t k = 0; k < kOrders.size(); ++k) {
      std::array<double, 2> out{};
      run_block(SumRows{x.data(), out.data(), 700}, row, kOrders[k]);
      sums[k] = out[row];
    }
    CHECK(sums[0] == doctest::Approx(expected).epsilon(1e-14));  // 700 roundings of a double
    CHECK(sums[1] == sums[0]);
    CHECK(sums[2] == sums[0]);
  }
}

// What the orders are for: each thread adds up what the ones before it have left in this phase.
struct Racy {
  static constexpr int kThreads = 32;
  struct Shared {
    int value[kThreads];
  };
  int* y;
  template <class Block>
  void operator()(Block& block) const {
    block.phase([&](int t, Shared& s) { s.value[t] = t; });
    block.phase([&](int t, Shared& s) { s.value[t] += s.value[(t + 1) % kThreads]; });
    const int first = block.agreed([](const Shared& s) { return s.value[0]; });
    block.phase([&](int t, Shared& s) {
      if (t == 0) *y = first + s.value[kThreads - 1];
    });
  }
};

TEST_CASE("a race within a phase shows as different results") {
  std::array<int, 3> y{};
  for (size_t k = 0; k < kOrders.size(); ++k) run_block(Racy{&y[k]}, 0, kOrders[k]);
  CHECK(y[0] == 33);  // thread 0 before 31: 1, and 31 + 1
  CHECK(y[1] != y[0]);
}

}  // namespace
}  // namespace dpt::cuda
