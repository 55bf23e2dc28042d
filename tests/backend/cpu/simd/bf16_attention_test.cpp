// Attention of numbers of bf16: by fma, by VDPBF16PS where this CPU has it, and emulated.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/bf16_products.h"
#include "backend/cpu/simd/attention.h"
#include "backend/cpu/simd/isas.h"
#include "base/flush_subnormals.h"
#include "base/half.h"

namespace dpt {
namespace {

constexpr double kEps = 0x1p-24;    // of a rounding to a float
constexpr double kHalf = 0x1p-8;    // of a rounding to bf16
constexpr double kTiny = 0x1p-100;  // more than what is flushed to 0

// Inputs of one head, dense, and what the kernels computed.
struct Head {
  size_t positions, columns;
  bool causal;
  std::vector<float> qkv, dy;
  std::vector<float> y, logsumexp, dqkv;

  Head(size_t n, size_t c, bool only_earlier) : positions(n), columns(c), causal(only_earlier) {
    Numbers numbers(n * 100 + c);
    qkv = numbers.reals(3 * n * c);
    dy = numbers.reals(n * c);
    for (auto* values : {&qkv, &dy})
      for (float& x : *values) x = rounded_to(DType::bf16, x);
  }

  void compute(const AttentionKernels& kernels) {
    y.assign(positions * columns, 77);
    logsumexp.assign(positions, 77);
    dqkv.assign(3 * positions * columns, 77);
    std::vector<float> workspace(attention_workspace(positions, columns) + 1, 77);
    const AttentionHead head{.positions = positions,
                             .columns = columns,
                             .qkv_row = 3 * columns,
                             .y_row = columns,
                             .causal = causal,
                             .q = qkv.data(),
                             .k = qkv.data() + columns,
                             .v = qkv.data() + 2 * columns};
    kernels.forward(head, y.data(), logsumexp.data(), workspace.data());
    for (float& x : y) x = rounded_to(DType::bf16, x);
    kernels.backward(head,
                     {dy.data(), y.data(), logsumexp.data(), dqkv.data(), dqkv.data() + columns,
                      dqkv.data() + 2 * columns},
                     workspace.data());
    CHECK(workspace.back() == 77);
  }

  double q(size_t i, size_t c) const { return double{qkv[3 * i * columns + c]}; }
  double k(size_t i, size_t c) const { return double{qkv[(3 * i + 1) * columns + c]}; }
  double v(size_t i, size_t c) const { return double{qkv[(3 * i + 2) * columns + c]}; }
  size_t seen(size_t i) const { return causal ? i + 1 : positions; }
};

// A sum and the sum of the sizes of its terms.
struct Sum {
  double value = 0, size = 0;
  void add(double term) {
    value += term;
    size += std::fabs(term);
  }
};

// A number and the largest error of what a kernel computes.
struct Number {
  double value, error;
};

struct Expected {
  std::vector<Number> scores, p, slopes;  // [positions, positions]
  double worst = 0;                       // |difference| / bound
  void check(float got, double value, double bound) {
    worst = std::max(worst, std::fabs(double{got} - value) / (bound + kTiny));
  }
};

// Sums of k terms in float are off by at most k eps of the sum of the sizes of their terms; each
// weight and slope by a rounding to bf16, and by what its score is off, since exp(x + e) is
// exp(x) (1 + e). The rounding of y is half a unit in its last place.
void check_forward(const Head& h, Expected& e) {
  const double scale = 1 / std::sqrt(static_cast<double>(h.columns));
  const auto terms = static_cast<double>(h.positions), columns = static_cast<double>(h.columns);
  e.scores.assign(h.positions * h.positions, {0, 0});
  for (size_t i = 0; i < h.positions; ++i) {
    double top = -INFINITY, off = 0, sum = 0;
    for (size_t j = 0; j < h.seen(i); ++j) {
      Sum s;
      for (size_t c = 0; c < h.columns; ++c) s.add(h.q(i, c) * h.k(j, c));
      const Number score{scale * s.value, scale * s.size * (columns + 4) * kEps};
      e.scores[i * h.positions + j] = score;
      top = std::max(top, score.value);
      off = std::max(off, score.error);
    }
    for (size_t j = 0; j < h.seen(i); ++j)
      sum += std::exp(e.scores[i * h.positions + j].value - top);
    e.check(h.logsumexp[i], top + std::log(sum), off + (terms + 16 + 4 * std::fabs(top)) * kEps);
    for (size_t c = 0; c < h.columns; ++c) {
      Sum y;
      for (size_t j = 0; j < h.seen(i); ++j)
        y.add(std::exp(e.scores[i * h.positions + j].value - top) / sum * h.v(j, c));
      const double bound = y.size * (kHalf + 2 * off + (2 * terms + 32) * kEps);
      e.check(h.y[i * h.columns + c], y.value, bound + (std::fabs(y.value) + bound) * kHalf);
    }
  }
}

// With the y and logsumexp that the kernel was given.
void check_slopes(const Head& h, Expected& e) {
  const double scale = 1 / std::sqrt(static_cast<double>(h.columns));
  const auto columns = static_cast<double>(h.columns);
  e.p = e.slopes = std::vector<Number>(h.positions * h.positions, {0, 0});
  for (size_t i = 0; i < h.positions; ++i) {
    Sum along;
    for (size_t c = 0; c < h.columns; ++c)
      along.add(double{h.dy[i * h.columns + c]} * double{h.y[i * h.columns + c]});
    for (size_t j = 0; j < h.seen(i); ++j) {
      const size_t at = i * h.positions + j;
      const double p = std::exp(e.scores[at].value - double{h.logsumexp[i]});
      const double off = e.scores[at].error + (16 + 4 * std::fabs(e.scores[at].value)) * kEps +
                         4 * std::fabs(double{h.logsumexp[i]}) * kEps;
      Sum dp;
      for (size_t c = 0; c < h.columns; ++c) dp.add(double{h.dy[i * h.columns + c]} * h.v(j, c));
      const double slope = scale * p * (dp.value - along.value);
      e.p[at] = {p, p * (kHalf + 1.01 * off)};
      e.slopes[at] = {slope, std::fabs(slope) * (kHalf + 1.01 * off) +
                                 1.01 * scale * p * (columns + 8) * kEps * (dp.size + along.size)};
    }
  }
}

void check_backward(const Head& h, Expected& e) {
  check_slopes(h, e);
  const double roundings = (static_cast<double>(h.positions) + 2) * kEps;
  const auto check = [&](size_t row, size_t column, auto factor, auto value) {
    Sum sum;
    double error = 0;
    for (size_t n = 0; n < h.positions; ++n) {
      const Number a = factor(n);
      sum.add(a.value * value(n));
      error += a.error * std::fabs(value(n));
    }
    e.check(h.dqkv[3 * row * h.columns + column], sum.value, 1.01 * error + roundings * sum.size);
  };
  for (size_t i = 0; i < h.positions; ++i)
    for (size_t c = 0; c < h.columns; ++c) {
      const auto of_row = [&](size_t n) { return e.slopes[i * h.positions + n]; };
      const auto of_column = [&](size_t n) { return e.slopes[n * h.positions + i]; };
      const auto weight = [&](size_t n) { return e.p[n * h.positions + i]; };
      check(i, c, of_row, [&](size_t n) { return h.k(n, c); });
      check(i, h.columns + c, of_column, [&](size_t n) { return h.q(n, c); });
      check(i, 2 * h.columns + c, weight,
            [&](size_t n) { return double{h.dy[n * h.columns + c]}; });
    }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Size {
  size_t positions, columns;
};
// Around pairs, vectors, tiles and blocks of every instruction set.
const std::vector<Size> kSizes = {{1, 1},   {2, 8},   {3, 5},    {13, 16},  {14, 3},   {33, 40},
                                  {56, 32}, {64, 17}, {65, 7},   {113, 64}, {121, 33}, {200, 9},
                                  {57, 1},  {63, 2},  {129, 20}, {30, 31}};

}  // namespace

TEST_CASE("attention of bf16 is as exact as its factors, on every instruction set") {
  const FlushSubnormals flush;
  for (const SimdKernels* isa : isas_of_this_cpu())
    for (const Size s : kSizes)
      for (const bool causal : {false, true}) {
        INFO(isa->name, " ", s.positions, " positions, ", s.columns, " columns, causal ", causal);
        Head head(s.positions, s.columns, causal);
        head.compute(attention_simd(isa->isa).bf16);
        Expected expected;
        check_forward(head, expected);
        check_backward(head, expected);
        CHECK(expected.worst <= 1);
        // A kernel that does not round its factors would be far below the bound.
        if (s.positions > 50 && s.columns > 8) CHECK(expected.worst > 0.02);
      }
}

TEST_CASE("attention of pairs of bf16 has the bits of attention by fma") {
  const FlushSubnormals flush;
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    const AttentionVariants& all = attention_simd(isa->isa);
    std::vector<std::pair<std::string, const AttentionKernels*>> pairs = {
        {"emulated", &all.emulated}};
    if (isa->isa == Isa::avx512 && bf16_probe().usable())
      pairs.emplace_back("VDPBF16PS", &all.instruction);
    for (const Size s : kSizes)
      for (const bool causal : {false, true})
        for (const auto& named : pairs) {
          INFO(named.first, " ", isa->name, " ", s.positions, " positions, ", s.columns,
               " columns, causal ", causal);
          Head by_fma(s.positions, s.columns, causal), by_pairs = by_fma;
          by_fma.compute(all.bf16);
          by_pairs.compute(*named.second);
          CHECK(same_bits(by_pairs.y, by_fma.y));
          CHECK(same_bits(by_pairs.logsumexp, by_fma.logsumexp));
          CHECK(same_bits(by_pairs.dqkv, by_fma.dqkv));
        }
  }
}

}  // namespace dpt
