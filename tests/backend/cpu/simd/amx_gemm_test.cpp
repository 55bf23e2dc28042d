// Products of bf16 by tiles: by AMX where this CPU has it, and emulated.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/bf16_products.h"
#include "backend/cpu/simd/bf16_gemm.h"
#include "backend/cpu/simd/isas.h"
#include "base/flush_subnormals.h"
#include "base/half.h"

namespace dpt {
namespace {

struct Product {
  size_t rows, depth, columns;
};
// Around tiles (16), groups of factors (32), blocks of sums (32), and blocks of the depth (224).
const std::vector<Product> kProducts = {{1, 1, 1},    {16, 32, 16},   {17, 31, 33}, {32, 64, 32},
                                        {33, 65, 31}, {40, 223, 50},  {5, 224, 7},  {31, 225, 64},
                                        {3, 700, 40}, {70, 40, 1760}, {0, 8, 20},   {20, 0, 18}};

std::vector<float> bf16s(Numbers& numbers, size_t count) {
  std::vector<float> out = numbers.reals(count);
  for (float& x : out) x = rounded_to(DType::bf16, x);
  return out;
}

struct Memory {
  std::vector<float> floats = std::vector<float>(kGemmWorkspace + 17, 77);
  float* data() {
    void* p = floats.data();
    size_t space = floats.size() * sizeof(float);
    return static_cast<float*>(std::align(64, kGemmWorkspace * sizeof(float), p, space));
  }
};

std::vector<std::pair<std::string, const TileKernels*>> tiles() {
  std::vector<std::pair<std::string, const TileKernels*>> out;
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    const Bf16Kernels& all = bf16_simd(isa->isa);
    out.emplace_back(std::string("emulated, ") + isa->name, &all.emulated_tiles);
    if (isa->isa == Isa::avx512 && bf16_probe().tiles_usable()) out.emplace_back("AMX", &all.tiles);
  }
  return out;
}

// The order of sums that bf16_gemm.h documents. factors(k): the two factors of index k.
template <class F>
float sum_in_order(float start, size_t depth, F factors) {
  for (size_t group = 0; group < depth; group += 32) {
    float even = 0, odd = 0;
    for (size_t k = group; k < std::min(depth, group + 32); ++k) {
      const auto [a, b] = factors(k);
      float& chain = k % 2 == 0 ? even : odd;
      chain = std::fma(a, b, chain);
    }
    start += even + odd;
  }
  return start;
}

// Each of the chains and sums rounds once per factor and twice per group; the result to bf16 once.
template <class F>
double share_of_bound(float got, float start, size_t depth, bool to_bf16, F factors) {
  double sum = double{start}, sizes = std::fabs(sum);
  for (size_t k = 0; k < depth; ++k) {
    const auto [a, b] = factors(k);
    sum += double{a} * double{b};
    sizes += std::fabs(double{a} * double{b});
  }
  const double bound = (static_cast<double>(depth) + 3) * 0x1p-24 * sizes;
  return std::fabs(double{got} - sum) /
         (bound + (to_bf16 ? (std::fabs(sum) + bound) * 0x1p-8 : 0) + 0x1p-100);
}

}  // namespace

TEST_CASE("products by tiles add in the documented order, within the bound of float sums") {
  const FlushSubnormals flush;
  for (const auto& named : tiles())
    for (const Product& s : kProducts)
      for (const bool transposed : {false, true})
        for (const bool adds : {false, true}) {
          INFO(named.first, " ", s.rows, " rows, depth ", s.depth, ", ", s.columns, " columns");
          Numbers numbers(s.rows + s.depth);
          const std::vector<float> a = bf16s(numbers, s.rows * s.depth),
                                   b = bf16s(numbers, s.depth * s.columns),
                                   before = numbers.reals(s.rows * s.columns),
                                   bias = bf16s(numbers, s.columns);
          std::vector<float> c = before;
          c.push_back(77);
          const RowPairs all{.count = s.rows};
          Memory memory;
          named.second->products.row_product({.taps = &all,
                                              .tap_count = 1,
                                              .depth = s.depth,
                                              .columns = s.columns,
                                              .a = a.data(),
                                              .b = b.data(),
                                              .b_transposed = transposed,
                                              .c = c.data(),
                                              .adds = adds,
                                              .chain = true,
                                              .to = adds ? RoundTo::f32 : RoundTo::bf16,
                                              .bias = adds ? nullptr : bias.data()},
                                             memory.data());
          CHECK(c.back() == 77);
          CHECK(memory.floats.back() == 77);
          double worst = 0;
          bool same = true;
          for (size_t i = 0; i < s.rows; ++i)
            for (size_t n = 0; n < s.columns; ++n) {
              const auto factors = [&](size_t k) {
                return std::pair(a[i * s.depth + k],
                                 b[transposed ? n * s.depth + k : k * s.columns + n]);
              };
              const float start = adds ? before[i * s.columns + n] : 0;
              const float got = c[i * s.columns + n], sum = sum_in_order(start, s.depth, factors);
              same = same && got == (adds ? sum : rounded_to(DType::bf16, sum + bias[n]));
              if (adds)
                worst = std::max(worst, share_of_bound(got, start, s.depth, false, factors));
              else
                worst = std::max(worst, share_of_bound(got, bias[n], s.depth, true, factors));
            }
          CHECK(same);
          CHECK(worst <= 1);
        }
}

TEST_CASE("sums over rows by tiles add in the documented order") {
  const FlushSubnormals flush;
  for (const auto& named : tiles())
    for (const Product& s : kProducts)
      for (const bool adds : {false, true}) {
        // Here the depth of a sum is the number of rows.
        INFO(named.first, " ", s.depth, " rows, ", s.rows, " and ", s.columns, " columns");
        Numbers numbers(s.rows + s.depth);
        const size_t a_row = s.rows + 3;
        const std::vector<float> a = bf16s(numbers, s.depth * a_row),
                                 b = bf16s(numbers, s.depth * s.columns),
                                 before = numbers.reals(s.rows * s.columns);
        std::vector<float> c = before;
        c.push_back(77);
        const RowPairs all{.count = s.depth};
        Memory memory;
        named.second->products.row_sum({.taps = &all,
                                        .tap_count = 1,
                                        .depth = s.rows,
                                        .columns = s.columns,
                                        .a = a.data(),
                                        .a_row = a_row,
                                        .b = b.data(),
                                        .c = c.data(),
                                        .adds = adds,
                                        .chain = true},
                                       memory.data());
        CHECK(c.back() == 77);
        CHECK(memory.floats.back() == 77);
        bool same = true;
        for (size_t i = 0; i < s.rows; ++i)
          for (size_t n = 0; n < s.columns; ++n)
            same = same &&
                   c[i * s.columns + n] ==
                       sum_in_order(adds ? before[i * s.columns + n] : 0, s.depth, [&](size_t k) {
                         return std::pair(a[k * a_row + i], b[k * s.columns + n]);
                       });
        CHECK(same);
      }
}

}  // namespace dpt
