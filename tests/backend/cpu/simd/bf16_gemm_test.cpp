// Products of bf16 as pairs: by the instruction of this CPU, where it has it, and emulated.
#include "backend/cpu/simd/bf16_gemm.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/bf16_products.h"
#include "backend/cpu/simd/isas.h"
#include "base/flush_subnormals.h"
#include "base/half.h"

namespace dpt {
namespace {

struct Sizes {
  size_t rows, depth, columns;
};

// Around tiles, vectors and pairs of every instruction set, and around the blocks of chains (1024)
// and of other sums (512 and 256).
const std::vector<Sizes> kSizes = {{1, 1, 1},     {3, 5, 7},     {14, 16, 32},   {15, 17, 33},
                                   {29, 64, 31},  {7, 9, 17},    {100, 301, 65}, {30, 513, 64},
                                   {5, 1030, 40}, {257, 40, 48}, {515, 33, 16},  {2, 3, 1600},
                                   {0, 4, 5},     {600, 270, 20}};

std::vector<float> bf16s(Numbers& numbers, size_t count) {
  std::vector<float> out = numbers.reals(count);
  for (float& x : out) x = rounded_to(DType::bf16, x);
  return out;
}

struct Workspace {
  std::vector<float> memory = std::vector<float>(kGemmWorkspace + 16);
  float* data() {
    void* p = memory.data();
    size_t space = memory.size() * sizeof(float);
    return static_cast<float*>(std::align(64, kGemmWorkspace * sizeof(float), p, space));
  }
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The products of this CPU, each with those of floats that they must equal.
struct Pair {
  std::string name;
  const GemmKernels *pairs, *floats;
};
std::vector<Pair> products() {
  std::vector<Pair> out;
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    const Bf16Kernels& bf16 = bf16_simd(isa->isa);
    out.push_back({std::string("emulated, ") + isa->name, &bf16.emulated, &gemm_simd(isa->isa)});
    if (isa->isa == Isa::avx512 && bf16_probe().usable())
      out.push_back({"VDPBF16PS", &bf16.instruction, &gemm_simd(isa->isa)});
  }
  return out;
}

// Rows of a that are read in another order, and some twice.
struct Table {
  std::vector<uint32_t> first;
  RowPairs pairs;
  Table(size_t rows, Numbers& numbers) : first(rows) {
    for (uint32_t& f : first) f = static_cast<uint32_t>(numbers.next() % rows);
    pairs = {.count = rows, .first = first.data()};
  }
};

}  // namespace

TEST_CASE("products of pairs of bf16 have the bits of products of floats") {
  const FlushSubnormals flush;
  for (const Pair& p : products())
    for (const Sizes& s : kSizes) {
      INFO(p.name, " ", s.rows, " rows, depth ", s.depth, ", ", s.columns, " columns");
      Numbers numbers(s.rows + s.depth);
      const std::vector<float> a = bf16s(numbers, s.rows * s.depth),
                               b = bf16s(numbers, s.depth * s.columns),
                               c = numbers.reals(s.rows * s.columns),
                               bias = bf16s(numbers, s.columns);
      const Table table(s.rows, numbers);
      const RowPairs all{.count = s.rows};
      for (const bool chain : {false, true})
        for (const bool transposed : {false, true})
          for (const RowPairs* taps : {&all, &table.pairs}) {
            RowProduct product{.taps = taps,
                               .tap_count = 1,
                               .depth = s.depth,
                               .columns = s.columns,
                               .a = a.data(),
                               .b = b.data(),
                               .b_transposed = transposed,
                               .c = nullptr,
                               .adds = taps != &all,
                               .chain = chain,
                               .to = taps == &all ? RoundTo::bf16 : RoundTo::f32,
                               .bias = chain && taps == &all ? bias.data() : nullptr};
            std::vector<float> expected = c, got = c;
            product.c = expected.data();
            p.floats->row_product(product, Workspace().data());
            product.c = got.data();
            p.pairs->row_product(product, Workspace().data());
            CHECK(same_bits(got, expected));
          }
    }
}

TEST_CASE("sums over rows of pairs of bf16 have the bits of sums of floats") {
  const FlushSubnormals flush;
  for (const Pair& p : products())
    for (const Sizes& s : kSizes) {
      INFO(p.name, " ", s.rows, " rows, depth ", s.depth, ", ", s.columns, " columns");
      Numbers numbers(s.rows + s.depth);
      const std::vector<float> a = bf16s(numbers, s.rows * (s.depth + 3)),
                               b = bf16s(numbers, s.rows * s.columns),
                               c = numbers.reals(s.depth * s.columns);
      const Table table(s.rows, numbers);
      const RowPairs all{.count = s.rows};
      for (const bool chain : {false, true})
        for (const bool adds : {false, true})
          for (const RowPairs* taps : {&all, &table.pairs}) {
            RowSum sum{.taps = taps,
                       .tap_count = 1,
                       .depth = s.depth,
                       .columns = s.columns,
                       .a = a.data(),
                       .a_row = s.depth + 3,
                       .b = b.data(),
                       .c = nullptr,
                       .adds = adds,
                       .chain = chain};
            std::vector<float> expected = c, got = c;
            sum.c = expected.data();
            p.floats->row_sum(sum, Workspace().data());
            sum.c = got.data();
            p.pairs->row_sum(sum, Workspace().data());
            CHECK(same_bits(got, expected));
          }
    }
}

// The gradient of a weight in the update of the optimizer: samples of several groups of shards,
// with odd numbers of them.
TEST_CASE("sums over rows of pairs do not depend on the number of calls") {
  const FlushSubnormals flush;
  constexpr size_t kRows = 41, kDepth = 20, kColumns = 37;
  for (const Pair& p : products()) {
    INFO(p.name);
    Numbers numbers(3);
    const std::vector<float> a = bf16s(numbers, kRows * kDepth),
                             b = bf16s(numbers, kRows * kColumns);
    const auto sum_in = [&](const std::vector<size_t>& parts) {
      std::vector<float> c(kDepth * kColumns);
      size_t begin = 0;
      for (const size_t rows : parts) {
        const RowPairs some{.count = rows};
        p.pairs->row_sum({.taps = &some,
                          .tap_count = 1,
                          .depth = kDepth,
                          .columns = kColumns,
                          .a = a.data() + begin * kDepth,
                          .a_row = kDepth,
                          .b = b.data() + begin * kColumns,
                          .c = c.data(),
                          .adds = begin > 0,
                          .chain = true},
                         Workspace().data());
        begin += rows;
      }
      return c;
    };
    const std::vector<float> whole = sum_in({kRows});
    CHECK(same_bits(sum_in({1, 40}), whole));
    CHECK(same_bits(sum_in({13, 7, 21}), whole));
  }
}

// Each of the k additions of a chain is off by at most eps = 2^-24 of the partial sum, which is at
// most the sum of |a b|; rounding the result to bf16 adds half a unit in its last place, at most
// 2^-8 of it.
TEST_CASE("a product of bf16 is as exact as float sums of k terms, rounded once") {
  const FlushSubnormals flush;
  constexpr size_t kRows = 20, kDepth = 1500, kColumns = 33;
  for (const Pair& p : products()) {
    INFO(p.name);
    Numbers numbers(4);
    const std::vector<float> a = bf16s(numbers, kRows * kDepth),
                             b = bf16s(numbers, kDepth * kColumns);
    std::vector<float> c(kRows * kColumns);
    const RowPairs all{.count = kRows};
    p.pairs->row_product({.taps = &all,
                          .tap_count = 1,
                          .depth = kDepth,
                          .columns = kColumns,
                          .a = a.data(),
                          .b = b.data(),
                          .b_transposed = false,
                          .c = c.data(),
                          .adds = false,
                          .chain = true,
                          .to = RoundTo::bf16},
                         Workspace().data());
    double worst = 0;
    for (size_t i = 0; i < kRows; ++i)
      for (size_t n = 0; n < kColumns; ++n) {
        double sum = 0, sizes = 0;
        for (size_t k = 0; k < kDepth; ++k) {
          const double term = double{a[i * kDepth + k]} * double{b[k * kColumns + n]};
          sum += term;
          sizes += std::fabs(term);
        }
        const double bound = kDepth * 0x1p-24 * sizes;
        const double got = double{c[i * kColumns + n]};
        worst = std::max(worst, std::fabs(got - sum) / (bound + (std::fabs(sum) + bound) * 0x1p-8));
        CHECK(got == double{rounded_to(DType::bf16, c[i * kColumns + n])});
      }
    CHECK(worst <= 1);
  }
}

TEST_CASE("the upper halves of words are multiplied first, with one rounding for each product") {
  const FlushSubnormals flush;
  const auto word = [](float upper, float lower) {
    return std::bit_cast<float>(uint32_t{to_bf16(upper)} << 16 | to_bf16(lower));
  };
  // 2^24 + 1 is not a float: it is rounded to 2^24, and then 2^24 is taken away, or the other way
  // round.
  struct Case {
    float a_upper, a_lower, b_upper, b_lower, sum, expected;
  };
  const Case cases[] = {
      {1, -0x1p12F, 1, 0x1p12F, 0x1p24F, 0},
      {-0x1p12F, 1, 0x1p12F, 1, 0x1p24F, 1},
      {3, 5, 7, 11, 2, 78},
      {0x1p-100F, 0, 0x1p-30F, 0, 0, 0},  // subnormal results are 0
      {0x1p-130F, 0, 0x1p30F, 0, 0, 0}    // and so are subnormal factors
  };
  for (const SimdKernels* isa : isas_of_this_cpu())
    for (const Case& c : cases) {
      std::vector<std::pair<std::string, MultiplyProbe>> all = {
          {"emulated", bf16_simd(isa->isa).probe_emulated}};
      if (isa->isa == Isa::avx512 && bf16_probe().usable())
        all.emplace_back("VDPBF16PS", bf16_simd(isa->isa).probe_instruction);
      for (const auto& named : all) {
        INFO(named.first, " ", isa->name, " expected ", c.expected);
        const std::vector<float> a(kMostLanes, word(c.a_upper, c.a_lower)),
            b(kMostLanes, word(c.b_upper, c.b_lower));
        std::vector<float> sum(kMostLanes, c.sum);
        named.second.multiply(a.data(), b.data(), sum.data());
        CHECK(std::ranges::count(sum, c.expected) == kMostLanes);
      }
    }
}

}  // namespace dpt
