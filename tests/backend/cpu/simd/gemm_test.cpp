#include "backend/cpu/simd/gemm.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"
#include "base/half.h"

namespace dpt {
namespace {

struct Sizes {
  size_t rows, depth, columns;
};

// Around tiles and vectors of every instruction set, around the blocks, and none at all.
const std::vector<Sizes> kSizes = {
    {1, 1, 1},     {3, 5, 7},      {14, 16, 32},  {15, 17, 33},  {29, 64, 31},  {6, 8, 16},
    {7, 9, 17},    {100, 300, 65}, {30, 512, 64}, {30, 513, 64}, {5, 1024, 9},  {257, 40, 48},
    {300, 33, 16}, {8, 520, 450},  {2, 3, 1600},  {0, 4, 5},     {600, 270, 20}};

// Pairs of rows of a, which has twice as many, and of c, which has one that nobody writes.
struct Tables {
  std::vector<uint32_t> first, second;
  RowPairs pairs;
  Tables(size_t rows, Numbers& numbers) : first(rows), second(rows) {
    for (size_t i = 0; i < rows; ++i) first[i] = static_cast<uint32_t>(numbers.next() % (2 * rows));
    std::iota(second.begin(), second.end(), 0U);
    for (size_t i = rows; i > 1; --i) std::swap(second[i - 1], second[numbers.next() % i]);
    pairs = {rows, first.data(), second.data()};
  }
};

size_t at(const uint32_t* table, size_t i) { return table != nullptr ? table[i] : i; }

struct Workspace {
  std::vector<float> memory = std::vector<float>(kGemmWorkspace + 16);
  float* data() {
    void* p = memory.data();
    size_t space = memory.size() * sizeof(float);
    return static_cast<float*>(std::align(64, kGemmWorkspace * sizeof(float), p, space));
  }
};

// Of whole numbers, of which sums are exact in any order. Pointers, because sanitizers make
// subscripts slow.
float dot(const float* a, const float* b, size_t count, size_t step) {
  float sum = 0;
  for (size_t k = 0; k < count; ++k) sum += a[k] * b[k * step];
  return sum;
}
void add_scaled(float* to, const float* row, size_t count, float scale) {
  for (size_t n = 0; n < count; ++n) to[n] += scale * row[n];
}

void check_product(const GemmKernels& kernels, const Sizes& s, const std::vector<RowPairs>& taps,
                   bool transposed, bool adds, bool chain, RoundTo to = RoundTo::f32) {
  Numbers numbers(s.rows + s.depth + s.columns);
  const std::vector<float> a = numbers.integers(2 * s.rows * s.depth);
  const std::vector<float> b = numbers.integers(taps.size() * s.depth * s.columns);
  std::vector<float> c = numbers.integers((s.rows + 1) * s.columns), expected = c;
  if (!adds) std::fill_n(expected.begin(), s.rows * s.columns, 0.0F);
  for (size_t t = 0; t < taps.size(); ++t)
    for (size_t i = 0; i < taps[t].count; ++i)
      for (size_t n = 0; n < s.columns; ++n)
        expected[at(taps[t].second, i) * s.columns + n] +=
            dot(&a[at(taps[t].first, i) * s.depth],
                &b[t * s.depth * s.columns + n * (transposed ? s.depth : 1)], s.depth,
                transposed ? 1 : s.columns);
  kernels.row_product({.taps = taps.data(),
                       .tap_count = taps.size(),
                       .depth = s.depth,
                       .columns = s.columns,
                       .a = a.data(),
                       .b = b.data(),
                       .b_transposed = transposed,
                       .c = c.data(),
                       .adds = adds,
                       .chain = chain,
                       .to = to},
                      Workspace().data());
  if (to != RoundTo::f32)
    for (size_t i = 0; i < s.rows * s.columns; ++i)
      expected[i] = rounded_to(to == RoundTo::bf16 ? DType::bf16 : DType::f16, expected[i]);
  CHECK(c == expected);
}

void check_sum(const GemmKernels& kernels, const Sizes& s, const std::vector<RowPairs>& taps,
               bool adds, bool chain) {
  const size_t a_row = s.depth + (chain ? 3 : 0);
  Numbers numbers(s.rows + s.depth + s.columns);
  const std::vector<float> a = numbers.integers(2 * s.rows * a_row);
  const std::vector<float> b = numbers.integers(s.rows * s.columns);
  std::vector<float> c = numbers.integers(taps.size() * s.depth * s.columns + 1), expected = c;
  if (!adds) std::fill_n(expected.begin(), expected.size() - 1, 0.0F);
  for (size_t t = 0; t < taps.size(); ++t)
    for (size_t i = 0; i < taps[t].count; ++i)
      for (size_t k = 0; k < s.depth; ++k)
        add_scaled(&expected[(t * s.depth + k) * s.columns], &b[at(taps[t].second, i) * s.columns],
                   s.columns, a[at(taps[t].first, i) * a_row + k]);
  kernels.row_sum({.taps = taps.data(),
                   .tap_count = taps.size(),
                   .depth = s.depth,
                   .columns = s.columns,
                   .a = a.data(),
                   .a_row = a_row,
                   .b = b.data(),
                   .c = c.data(),
                   .adds = adds,
                   .chain = chain},
                  Workspace().data());
  CHECK(c == expected);
}

}  // namespace

TEST_CASE("products and sums of rows are exact for integers, of every size, wherever rows lie") {
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    const GemmKernels& kernels = gemm_simd(isa->isa);
    for (const Sizes& s : kSizes) {
      INFO(isa->name, " ", s.rows, " rows, depth ", s.depth, ", ", s.columns, " columns");
      Numbers numbers(s.rows);
      const Tables some(s.rows, numbers), others(s.rows, numbers);
      const RowPairs all{.count = s.rows}, none{.count = 0};
      RowPairs half = others.pairs;
      half.count /= 2;
      for (const bool chain : {false, true}) {
        for (const bool transposed : {false, true}) {
          check_product(kernels, s, {all}, transposed, false, chain);
          check_product(kernels, s, {all}, transposed, true, chain);
          check_product(kernels, s, {some.pairs}, transposed, false, chain);
          check_product(kernels, s, {half, none, some.pairs}, transposed, true, chain);
          // Sanitizers make the plain loops slow.
          if (s.rows * s.depth * s.columns > 1'000'000) continue;
          check_product(kernels, s, {all}, transposed, false, chain, RoundTo::bf16);
          check_product(kernels, s, {some.pairs}, transposed, true, chain, RoundTo::f16);
        }
        check_sum(kernels, s, {all}, false, chain);
        check_sum(kernels, s, {all}, true, chain);
        check_sum(kernels, s, {some.pairs, none, half}, false, chain);
      }
    }
  }
}

}  // namespace dpt
