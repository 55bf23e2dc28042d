#include "backend/cpu/simd/batch_norm.h"

#include <cmath>
#include <new>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"
#include "base/half.h"

namespace dpt {
namespace {

// At cache lines, as the arenas of a run.
template <class T>
struct AtLines {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kLine)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kLine); }
  bool operator==(const AtLines&) const = default;
};
using Floats = std::vector<float, AtLines<float>>;

struct Channels {
  size_t c;
  std::vector<double> values;  // a multiple of kChannelBlock, numbers that mean nothing behind c
  Channels(size_t channels, Numbers& numbers)
      : c(channels), values((c + kChannelBlock - 1) / kChannelBlock * kChannelBlock) {
    for (double& v : values) v = static_cast<double>(numbers.real());
  }
  double operator[](size_t i) const { return values[i % c]; }
  double* data() { return values.data(); }
};

void check_channels(const Channels& got, const Channels& expected) {
  for (size_t i = 0; i < got.c; ++i) CHECK(got[i] == expected[i]);
}

// A float's rounding of what is known to many more digits, and of what is tiny.
void check_rounded(const Floats& got, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    REQUIRE(std::abs(static_cast<double>(got[i]) - expected[i]) <=
            0x1.0001p-24 * std::abs(expected[i]) + 1e-15);
  REQUIRE(got[expected.size()] == 77);
}

// Every pass over x[rows, c] with the kernels of one instruction set.
void check_passes(const BatchNormKernels& kernels, size_t rows, size_t c) {
  Numbers numbers(rows * 100 + c);
  const size_t n = rows * c;
  const std::vector<float> x = numbers.reals(n), dy = numbers.integers(n);
  Channels a(c, numbers), b(c, numbers), d(c, numbers);
  Floats y(n + 1, 77);
  std::vector<double> expected(n);

  kernels.scale(x.data(), a.data(), b.data(), y.data(), rows, c, RoundTo::f32);
  for (size_t i = 0; i < n; ++i) expected[i] = static_cast<double>(x[i]) * a[i] + b[i];
  check_rounded(y, expected);

  kernels.input_gradient(dy.data(), x.data(), {a.data(), b.data(), d.data()}, y.data(), rows, c,
                         RoundTo::f32);
  for (size_t i = 0; i < n; ++i)
    expected[i] = static_cast<double>(dy[i]) * a[i] + (static_cast<double>(x[i]) * b[i] + d[i]);
  check_rounded(y, expected);

  // Squares of floats are exact in double, so these are the bits of the plain loop.
  Channels sum = a, squares = b;
  kernels.sums(x.data(), sum.data(), squares.data(), rows, c);
  for (size_t i = 0; i < n; ++i) {
    a.values[i % c] += static_cast<double>(x[i]);
    b.values[i % c] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  check_channels(sum, a);
  check_channels(squares, b);

  // Nor are products of small whole numbers and of numbers of 17 bits rounded.
  Channels along = b;
  for (double& v : d.values) v = std::round(v * 64) / 64;
  kernels.gradient_sums(dy.data(), x.data(), d.data(), sum.data(), along.data(), rows, c);
  for (size_t i = 0; i < n; ++i) {
    a.values[i % c] += static_cast<double>(dy[i]);
    b.values[i % c] += static_cast<double>(dy[i]) * (static_cast<double>(x[i]) - d[i]);
  }
  check_channels(sum, a);
  check_channels(along, b);
}

// What is fused gives the bits of one pass after the other.
void check_fused(const BatchNormKernels& kernels, size_t rows, size_t c, RoundTo to) {
  const auto round = [&](float x) {
    return to == RoundTo::f32 ? x : rounded_to(to == RoundTo::bf16 ? DType::bf16 : DType::f16, x);
  };
  Numbers numbers(rows * 100 + c);
  const size_t n = rows * c;
  const std::vector<float> x = numbers.reals(n), dy = numbers.reals(n), r = numbers.reals(n);
  Channels a(c, numbers), b(c, numbers), d(c, numbers), scale(c, numbers), shift(c, numbers);
  const BatchNormLine line{a.data(), b.data(), d.data()};
  Floats y(n), fused(n), masked(n), sum(n);
  kernels.scale(x.data(), scale.data(), shift.data(), y.data(), rows, c, RoundTo::f32);
  for (float& v : y) v = round(v);
  kernels.scale(x.data(), scale.data(), shift.data(), fused.data(), rows, c, to);
  CHECK(fused == y);

  for (size_t i = 0; i < n; ++i) sum[i] = y[i] + r[i] > 0 ? round(y[i] + r[i]) : 0;
  kernels.scale_add_relu(x.data(), r.data(), scale.data(), shift.data(), fused.data(), rows, c, to);
  CHECK(fused == sum);
  for (float& v : y) v = v > 0 ? v : 0;
  kernels.scale_relu(x.data(), scale.data(), shift.data(), fused.data(), rows, c, to);
  CHECK(fused == y);

  Floats wanted(n);
  for (size_t i = 0; i < n; ++i) masked[i] = y[i] > 0 ? dy[i] : 0;
  kernels.input_gradient(masked.data(), x.data(), line, wanted.data(), rows, c, RoundTo::f32);
  for (float& v : wanted) v = round(v);
  kernels.input_gradient(masked.data(), x.data(), line, fused.data(), rows, c, to);
  CHECK(fused == wanted);
  kernels.relu_input_gradient(dy.data(), x.data(), line, scale.data(), shift.data(), fused.data(),
                              rows, c, to);
  CHECK(fused == wanted);
  Channels sums[] = {a, b, a, b};
  kernels.gradient_sums(masked.data(), x.data(), d.data(), sums[0].data(), sums[1].data(), rows, c);
  kernels.relu_gradient_sums(dy.data(), x.data(), d.data(), scale.data(), shift.data(),
                             sums[2].data(), sums[3].data(), rows, c);
  check_channels(sums[2], sums[0]);
  check_channels(sums[3], sums[1]);

  for (const bool two : {false, true}) {
    for (size_t i = 0; i < n; ++i) masked[i] = y[i] > 0 ? round(two ? dy[i] + r[i] : dy[i]) : 0;
    Channels all[] = {a, b, a, b};
    kernels.gradient_sums(masked.data(), x.data(), d.data(), all[0].data(), all[1].data(), rows, c);
    kernels.add_relu_gradient(y.data(), x.data(), dy.data(), two ? r.data() : nullptr, d.data(),
                              fused.data(), all[2].data(), all[3].data(), rows, c, to);
    CHECK(fused == masked);
    check_channels(all[2], all[0]);
    check_channels(all[3], all[1]);
  }
}

TEST_CASE(
    "passes of batch norm: sums have the bits of plain loops, results are rounded once, fusion "
    "moves no bit") {
  for (const SimdKernels* isa : isas_of_this_cpu())
    for (size_t rows : {0, 1, 3, 4, 5, 9})
      for (size_t c : {1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100}) {
        CAPTURE(isa->name);
        CAPTURE(rows);
        CAPTURE(c);
        check_passes(batch_norm_simd(isa->isa), rows, c);
        for (const RoundTo to : {RoundTo::f32, RoundTo::bf16, RoundTo::f16})
          check_fused(batch_norm_simd(isa->isa), rows, c, to);
      }
}

TEST_CASE("what is stored past the caches is the same") {
  const size_t rows = 1031, c = 256;  // above simd/stream.h: kStreamedBytes
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    CAPTURE(isa->name);
    check_passes(batch_norm_simd(isa->isa), rows, c);
    check_fused(batch_norm_simd(isa->isa), rows, c, RoundTo::f32);
    check_fused(batch_norm_simd(isa->isa), rows, c, RoundTo::bf16);
  }
}

}  // namespace
}  // namespace dpt
