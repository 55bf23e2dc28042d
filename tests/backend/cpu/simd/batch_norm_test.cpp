#include "backend/cpu/simd/batch_norm.h"

#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"

namespace dpt {
namespace {

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
void check_rounded(const std::vector<float>& got, const std::vector<double>& expected) {
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
  std::vector<float> y(n + 1, 77);
  std::vector<double> expected(n);

  kernels.scale(x.data(), a.data(), b.data(), y.data(), rows, c);
  for (size_t i = 0; i < n; ++i) expected[i] = static_cast<double>(x[i]) * a[i] + b[i];
  check_rounded(y, expected);

  kernels.input_gradient(dy.data(), x.data(), a.data(), b.data(), d.data(), y.data(), rows, c);
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

TEST_CASE("passes of batch norm: sums have the bits of plain loops, results are rounded once") {
  for (const SimdKernels* isa : isas_of_this_cpu())
    for (size_t rows : {0, 1, 3, 4, 5, 9})
      for (size_t c : {1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100}) {
        CAPTURE(isa->name);
        CAPTURE(rows);
        CAPTURE(c);
        check_passes(batch_norm_simd(isa->isa), rows, c);
      }
}

}  // namespace
}  // namespace dpt
