// Every instruction set's functions against the C library in double, over dense grids of numbers.
#include "backend/cpu/simd/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"

namespace dpt {
namespace {

using formula::kIndexOf;

// All sorts of floats: every exponent, some thousand for each sign, and the odd ones.
std::vector<float> grid(float largest) {
  std::vector<float> x = {0.0F,
                          -0.0F,
                          std::numeric_limits<float>::denorm_min(),
                          -std::numeric_limits<float>::denorm_min(),
                          1.0F,
                          -1.0F};
  for (uint32_t bits = 0; bits < 0x7f800000; bits += 30011) {
    float v;
    std::memcpy(&v, &bits, sizeof v);
    if (v > largest) break;
    x.push_back(v);
    x.push_back(-v);
  }
  for (int i = -20000; i <= 20000; ++i) x.push_back(static_cast<float>(i) * largest / 20000);
  return x;
}

// The distance in units in the last place of the right result, not counting below the normal ones.
double units(float got, double right) {
  if (std::isnan(right)) return std::isnan(got) ? 0 : 1e9;
  const double limit = std::numeric_limits<float>::max();
  if (std::abs(right) > limit || std::isinf(right))
    return static_cast<double>(got) == static_cast<double>(static_cast<float>(right)) ? 0 : 1e9;
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(right == 0 ? 1e-38 : right), -126) - 23);
  return std::abs(static_cast<double>(got) - right) / ulp;
}

template <class F>
double worst(const ElementwiseKernels& k, int kind, float largest, std::vector<float> s, F right) {
  const std::vector<float> x = grid(largest);
  std::vector<float> y(x.size());
  k.activation[kind](x.data(), y.data(), x.size(), s.data());
  double most = 0;
  float where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double u = units(y[i], right(static_cast<double>(x[i])));
    if (u > most) {
      most = u;
      where = x[i];
    }
  }
  INFO("worst at ", where, ": ", most);
  CHECK(most < 1e8);
  return most;
}

}  // namespace

TEST_CASE("transcendental activations are within a few units in the last place") {
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    CAPTURE(isa->name);
    const ElementwiseKernels& k = elementwise_simd(isa->isa);
    const std::vector<float> one = {1, 20};
    // 1 + exp rounds once more than exp, the quotient once more. Beyond 88 exp overflows.
    CHECK(worst(k, kIndexOf<formula::Sigmoid>, 88, one,
                [](double x) { return 1 / (1 + std::exp(-x)); }) <= 3);
    CHECK(worst(k, kIndexOf<formula::Tanh>, 100, one, [](double x) { return std::tanh(x); }) <= 4);
    CHECK(worst(k, kIndexOf<formula::Elu>, 100, one,
                [](double x) { return x > 0 ? x : std::expm1(x); }) <= 2);
    CHECK(worst(k, kIndexOf<formula::Silu>, 80, one,
                [](double x) { return x / (1 + std::exp(-x)); }) <= 4);
    CHECK(worst(k, kIndexOf<formula::Softplus>, 80, one,
                [](double x) { return x > 20 ? x : std::log1p(std::exp(x)); }) <= 4);
    CHECK(worst(k, kIndexOf<formula::Relu>, 3e38F, one, [](double x) { return x > 0 ? x : 0; }) ==
          0);
  }
}

TEST_CASE("gelu is right to its cancellation: relative to x where erf comes near -1") {
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    CAPTURE(isa->name);
    const std::vector<float> x = grid(20);
    std::vector<float> y(x.size());
    const float s[2] = {};
    for (int kind : {kIndexOf<formula::Gelu>, kIndexOf<formula::GeluTanh>}) {
      elementwise_simd(isa->isa).activation[kind](x.data(), y.data(), x.size(), s);
      for (size_t i = 0; i < x.size(); ++i) {
        const double v = static_cast<double>(x[i]);
        const double right =
            kind == kIndexOf<formula::Gelu>
                ? 0.5 * v * (1 + std::erf(v * std::sqrt(0.5)))
                : 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
        REQUIRE(std::abs(static_cast<double>(y[i]) - right) <= 4e-7 * std::abs(v) + 1e-44);
      }
    }
  }
}

TEST_CASE("exp and log are within two units, seen through softmax of one and two columns") {
  // log_softmax of [0, x] is [-log1p(exp(x)), ...]; its gradient with y = x, dy = [-1, 0] gives
  // dx[1] = exp(x), the bare function.
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    CAPTURE(isa->name);
    const ElementwiseKernels& k = elementwise_simd(isa->isa);
    double most = 0;
    for (float x : grid(110)) {
      const float y[2] = {0, x}, dy[2] = {-1, 0};
      float dx[2];
      k.rows.log_softmax_gradient(y, dy, dx, 1, 2);
      most = std::max(most, units(dx[1], std::exp(static_cast<double>(x))));
    }
    CHECK(most <= 2);
    // kl_div's term is t * (log(t) - x): with x = 0 and t a power of two, the bare logarithm.
    most = 0;
    for (float x : grid(3e38F)) {
      if (x < 0) continue;
      const float t[1] = {x}, zero[1] = {0};
      const formula::KlDiv loss;
      const double sum =
          k.loss[formula::kLossOf<formula::KlDiv>]({.x = zero, .t = t, .n = 1, .loss = &loss});
      const double v = static_cast<double>(x);
      const double right = x == 0 ? 0 : v * std::log(v);
      if (std::abs(right) < 3e38) most = std::max(most, units(static_cast<float>(sum), right));
    }
    CHECK(most <= 3);  // the product rounds too
  }
}

TEST_CASE("what is no number stays none, what is infinite comes out as in the C library") {
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    CAPTURE(isa->name);
    const ElementwiseKernels& k = elementwise_simd(isa->isa);
    const float inf = INFINITY, s[2] = {1, 20};
    const float x[4] = {NAN, inf, -inf, -200};
    float y[4];
    const auto run = [&](int kind) {
      k.activation[kind](x, y, 4, s);
      CHECK(std::isnan(y[0]));
    };
    run(kIndexOf<formula::Sigmoid>);
    CHECK(y[1] == 1);
    CHECK(y[2] == 0);
    CHECK(y[3] == 0);
    run(kIndexOf<formula::Tanh>);
    CHECK(y[1] == 1);
    CHECK(y[2] == -1);
    run(kIndexOf<formula::Elu>);
    CHECK(y[1] == inf);
    CHECK(y[2] == -1);
    run(kIndexOf<formula::Softplus>);
    CHECK(y[1] == inf);
    CHECK(y[2] == 0);
    run(kIndexOf<formula::Gelu>);
    CHECK(y[1] == inf);
    run(kIndexOf<formula::Relu>);
    run(kIndexOf<formula::LeakyRelu>);
    run(kIndexOf<formula::Hardswish>);
    const float logits[6] = {1, -inf, 2, NAN, 0, 0};
    float out[6];
    k.rows.log_softmax(logits, out, 2, 3);
    CHECK(out[1] == -inf);
    for (int i = 3; i < 6; ++i) CHECK(std::isnan(out[i]));
  }
}

TEST_CASE("nothing is read or written behind the end") {
  for (const SimdKernels* isa : isas_of_this_cpu()) {
    const ElementwiseKernels& k = elementwise_simd(isa->isa);
    const float s[2] = {1, 20};
    for (size_t n = 0; n <= 70; ++n) {
      const std::vector<float> x(n, 0.5F);  // the address sanitizer sees reads behind it
      std::vector<float> y(n + 20, -7);
      k.activation[kIndexOf<formula::Sigmoid>](x.data(), y.data(), n, s);
      k.rows.log_softmax(x.data(), y.data(), 1, n);
      k.dropout(x.data(), y.data(), 1, n, {{1, 2}, 3, 4, uint64_t{1} << 31, 2});
      for (size_t i = n; i < y.size(); ++i) CHECK(y[i] == -7);
    }
  }
}

TEST_CASE("norms of rows are close to sums in double, on every instruction set") {
  Numbers numbers(11);
  constexpr size_t kRows = 3;
  for (const SimdKernels* isa : isas_of_this_cpu())
    for (const size_t columns : {7, 16, 33, 1024, 1025, 5000})
      for (const bool center : {true, false}) {
        CAPTURE(isa->name);
        CAPTURE(columns);
        const std::vector<float> x = numbers.reals(kRows * columns);
        std::vector<float> y(x.size()), mean(kRows), rstd(kRows);
        elementwise_simd(isa->isa).row_norm({.x = x.data(),
                                             .w = nullptr,
                                             .b = nullptr,
                                             .y = y.data(),
                                             .mean = center ? mean.data() : nullptr,
                                             .rstd = rstd.data(),
                                             .rows = kRows,
                                             .columns = columns,
                                             .eps = 1e-5F});
        const auto n = static_cast<double>(columns);
        for (size_t r = 0; r < kRows; ++r) {
          const float* row = x.data() + r * columns;
          double m = 0, squares = 0;
          for (size_t i = 0; i < columns; ++i) m += center ? double{row[i]} / n : 0;
          for (size_t i = 0; i < columns; ++i)
            squares += (double{row[i]} - m) * (double{row[i]} - m);
          const double s = 1 / std::sqrt(squares / n + 1e-5);
          double most = 0;
          for (size_t i = 0; i < columns; ++i)
            most = std::max(most, std::abs(double{y[r * columns + i]} - (double{row[i]} - m) * s));
          CHECK(most < 1e-6);  // some roundings of numbers of about 2
        }
      }
}

}  // namespace dpt
