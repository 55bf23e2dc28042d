#include <cmath>
#include <cstddef>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"
#include "backend/cpu/simd/simd.h"
#include "sanitizers.h"

namespace dpt {
namespace {

using Floats = std::vector<float>;

struct Case {
  size_t n, out, in;
};

// Sizes around every width of a vector and height of a tile, each extent with several others, and
// deep enough for more than one panel.
std::vector<Case> cases() {
  const size_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100};
  std::vector<Case> all = {{50, 200, 784}, {50, 200, 200}, {50, 10, 200},   {1, 1, 4096},
                           {784, 3, 1},    {3, 784, 65},   {100, 33, 300},  {70, 40, 600},
                           {29, 43, 257},  {20, 18, 1030}, {16, 530, 1024}, {17, 3, 2050},
                           {0, 3, 4},      {3, 0, 4},      {57, 64, 511}};
  for (size_t i = 0; i < std::size(sizes); ++i)
    for (const size_t j : {i, (i + 5) % std::size(sizes), (i * 7 + 3) % std::size(sizes)})
      for (size_t k = 0; k < std::size(sizes); k += 1 + i % 3)
        all.push_back({sizes[i], sizes[j], sizes[k]});
  return all;
}

// c[m, n] = sum over k of a(m, k) * b(k, n), in double; all values are integers, so it is exact.
template <class A, class B>
Floats product(size_t m, size_t n, size_t k, A a, B b) {
  Floats c(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t l = 0; l < k; ++l)
        sum += static_cast<double>(a(i, l)) * static_cast<double>(b(l, j));
      c[i * n + j] = static_cast<float>(sum);
    }
  return c;
}

Floats plus(Floats a, const Floats& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i % b.size()];
  return a;
}

// Room behind the result that no kernel may touch.
constexpr size_t kGuard = 40;
constexpr float kUntouched = 12345;
Floats guarded(Floats values) {
  values.resize(values.size() + kGuard, kUntouched);
  return values;
}

TEST_CASE("the products of a linear layer are exact for integers, of every size") {
  for (const SimdKernels* kernels : isas_of_this_cpu()) {
    for (const Case& c : cases()) {
      const size_t n = c.n, out = c.out, in = c.in;
      if (kSanitized && n * out * in > 5'000'000) continue;
      CAPTURE(kernels->name);
      CAPTURE(n);
      CAPTURE(out);
      CAPTURE(in);
      Numbers numbers(n * 1000003 + out * 1009 + in);
      const Floats x = numbers.integers(n * in), w = numbers.integers(out * in),
                   dy = numbers.integers(n * out), bias = numbers.integers(out);

      const Floats y = product(
          n, out, in, [&](size_t r, size_t k) { return x[r * in + k]; },
          [&](size_t k, size_t o) { return w[o * in + k]; });
      Floats got = guarded(Floats(n * out, -1));
      kernels->linear(x.data(), w.data(), nullptr, got.data(), n, out, in, n);
      CHECK(got == guarded(y));
      kernels->linear(x.data(), w.data(), bias.data(), got.data(), n, out, in, n);
      CHECK(got == guarded(plus(y, bias)));

      const Floats dx = product(
          n, in, out, [&](size_t r, size_t o) { return dy[r * out + o]; },
          [&](size_t o, size_t i) { return w[o * in + i]; });
      got = guarded(Floats(n * in, -1));
      kernels->matmul(dy.data(), w.data(), nullptr, got.data(), n, in, out);
      CHECK(got == guarded(dx));

      const Floats dw = product(
          out, in, n, [&](size_t o, size_t r) { return dy[r * out + o]; },
          [&](size_t r, size_t i) { return x[r * in + i]; });
      got = guarded(Floats(out * in, -1));
      kernels->linear_weight_gradient(dy.data(), out, x.data(), got.data(), n, out, in, false);
      CHECK(got == guarded(dw));

      const Floats db = product(
          1, out, n, [](size_t, size_t) { return 1.0F; },
          [&](size_t r, size_t o) { return dy[r * out + o]; });
      got = guarded(Floats(out, -1));
      kernels->sum_rows(dy.data(), got.data(), n, out);
      CHECK(got == guarded(db));
    }
  }
}

// Images, and gradients behind a relu: zeros in some operands, in stretches and alone.
Floats with_zeros(Floats values, size_t columns) {
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / columns, column = i % columns;
    if ((row / 4 * 7 + column / 4) % 5 < 3 || (row + column) % 11 == 0) values[i] = 0;
  }
  return values;
}

// The chain over k that pairs.h and tile.h promise for each element, zeros and all.
template <class A, class B>
Floats chain(const SimdKernels& kernels, const Case& c, A a, B b, const Floats& bias) {
  Floats out(c.n * c.out);
  for (size_t i = 0; i < c.n; ++i)
    for (size_t j = 0; j < c.out; ++j) {
      float sum = 0;
      for (size_t k = 0; k < c.in; ++k)
        sum = kernels.isa == Isa::baseline ? sum + a(i, k) * b(k, j)
                                           : std::fma(a(i, k), b(k, j), sum);
      out[i * c.out + j] = bias.empty() ? sum : sum + bias[j];
    }
  return out;
}

TEST_CASE("zeros that are left out of a product change no bit of it") {
  // Sizes around pairs, groups of rows, vectors of a column and blocks of depth; at last such that
  // rows are put in order (like_rows.h), around the blocks in which they are.
  const Case some[] = {{50, 200, 784}, {51, 209, 47},  {2, 64, 53},    {33, 417, 130},
                       {17, 70, 48},   {100, 208, 64}, {1, 200, 65},   {65, 130, 52},
                       {3, 500, 104},  {128, 96, 200}, {67, 200, 784}, {301, 70, 1000}};
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (const Case& c : some) {
      if (kSanitized && c.n * c.out * c.in > 15'000'000) continue;
      CAPTURE(kernels->name);
      CAPTURE(c.n);
      CAPTURE(c.out);
      CAPTURE(c.in);
      Numbers numbers(c.n + c.out);
      const Floats x = with_zeros(numbers.reals(c.n * c.in), c.in), w = numbers.reals(c.in * c.out),
                   dy = numbers.reals(c.n * c.out), bias = numbers.reals(c.out);
      Floats got = guarded(Floats(c.n * c.out, -1));
      kernels->matmul(x.data(), w.data(), bias.data(), got.data(), c.n, c.out, c.in);
      CHECK(got == guarded(chain(
                       *kernels, c, [&](size_t i, size_t k) { return x[i * c.in + k]; },
                       [&](size_t k, size_t j) { return w[k * c.out + j]; }, bias)));
      // Some rows of the weight gradient, as the optimizer's pass asks for them; all from row 0.
      for (const size_t begin : {size_t{0}, c.in / 3}) {
        const size_t rows = c.in - begin;
        got = guarded(Floats(rows * c.out, -1));
        kernels->linear_weight_gradient(x.data() + begin, c.in, dy.data(), got.data(), c.n, rows,
                                        c.out, false);
        CHECK(got == guarded(chain(
                         *kernels, {rows, c.out, c.n},
                         [&](size_t i, size_t k) { return x[k * c.in + begin + i]; },
                         [&](size_t k, size_t j) { return dy[k * c.out + j]; }, {})));
      }
    }
}

TEST_CASE("a row of a product has the same bits among more rows or fewer, in each order of sums") {
  const size_t n = 37, out = 70, in = 150;
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (const size_t usual_n : {size_t{1}, size_t{1000}}) {
      CAPTURE(kernels->name);
      CAPTURE(usual_n);
      Numbers numbers(n + usual_n);
      const Floats x = numbers.reals(n * in), w = numbers.reals(out * in);
      Floats whole(n * out);
      kernels->linear(x.data(), w.data(), nullptr, whole.data(), n, out, in, usual_n);
      Floats pieces(n * out);
      for (size_t r = 0, rows = 1; r < n; r += rows, rows = std::min(2 * rows + 1, n - r))
        kernels->linear(&x[r * in], w.data(), nullptr, &pieces[r * out], rows, out, in, usual_n);
      CHECK(whole == pieces);
    }
}

TEST_CASE("a weight gradient that is continued has the bits of one over all samples") {
  // Short and long rows, many zeros and none.
  const Case some[] = {{100, 48, 200}, {61, 5, 1500}, {40, 300, 17}, {700, 20, 1100}};
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (const Case& c : some)
      for (const bool zeros : {false, true}) {
        CAPTURE(kernels->name);
        CAPTURE(c.in);
        Numbers numbers(c.n);
        Floats dy = numbers.reals(c.n * c.out);
        if (zeros) dy = with_zeros(dy, c.out);
        const Floats x = numbers.reals(c.n * c.in);
        Floats whole(c.out * c.in), pieces(c.out * c.in, 7);
        kernels->linear_weight_gradient(dy.data(), c.out, x.data(), whole.data(), c.n, c.out, c.in,
                                        false);
        for (size_t r = 0, rows = 13; r < c.n; r += rows, rows = std::min<size_t>(29, c.n - r))
          kernels->linear_weight_gradient(&dy[r * c.out], c.out, &x[r * c.in], pieces.data(), rows,
                                          c.out, c.in, r > 0);
        CHECK(whole == pieces);
      }
}

// What each kernel gives for operands that begin `shift` floats after an aligned place.
struct Results {
  Floats y, dx, dw, db;
  bool operator==(const Results&) const = default;
};
Results run_shifted(const SimdKernels& kernels, const Case& c, size_t shift, const Floats& x,
                    const Floats& w, const Floats& dy) {
  const auto shifted = [&](const Floats& v) {
    Floats moved(shift);
    moved.insert(moved.end(), v.begin(), v.end());
    return moved;
  };
  const Floats xs = shifted(x), ws = shifted(w), dys = shifted(dy);
  Floats y(shift + c.n * c.out), dx(shift + c.n * c.in), dw(shift + c.out * c.in),
      db(shift + c.out);
  kernels.linear(&xs[shift], &ws[shift], nullptr, &y[shift], c.n, c.out, c.in, c.n);
  kernels.matmul(&dys[shift], &ws[shift], nullptr, &dx[shift], c.n, c.in, c.out);
  kernels.linear_weight_gradient(&dys[shift], c.out, &xs[shift], &dw[shift], c.n, c.out, c.in,
                                 false);
  kernels.sum_rows(&dys[shift], &db[shift], c.n, c.out);
  const auto from = static_cast<std::ptrdiff_t>(shift);
  return {{y.begin() + from, y.end()},
          {dx.begin() + from, dx.end()},
          {dw.begin() + from, dw.end()},
          {db.begin() + from, db.end()}};
}

TEST_CASE("the bits of a product don't depend on where its operands lie") {
  for (const SimdKernels* kernels : isas_of_this_cpu())
    // The last: products that leave out zeros, of which the weight gradient copies its operand.
    for (const Case& c :
         {Case{13, 37, 91}, Case{50, 40, 120}, Case{5, 3, 784}, Case{70, 150, 209}}) {
      Numbers numbers(c.n);
      const Floats x = numbers.reals(c.n * c.in), w = numbers.reals(c.out * c.in);
      Floats dy = numbers.reals(c.n * c.out);
      if (c.n == 70) dy = with_zeros(dy, c.out);
      const Results aligned = run_shifted(*kernels, c, 0, x, w, dy);
      for (const size_t shift : {1, 3, 8, 15}) {
        CAPTURE(kernels->name);
        CAPTURE(shift);
        CHECK(run_shifted(*kernels, c, shift, x, w, dy) == aligned);
      }
    }
}

TEST_CASE("the bits of an output don't depend on its position among the rows and columns") {
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (const Case& c : {Case{29, 67, 45}, Case{31, 37, 784}}) {
      CAPTURE(kernels->name);
      Numbers numbers(c.in);
      const Floats row = numbers.reals(c.in), column = numbers.reals(c.in);
      Floats x, w;
      for (size_t r = 0; r < c.n; ++r) x.insert(x.end(), row.begin(), row.end());
      for (size_t o = 0; o < c.out; ++o) w.insert(w.end(), column.begin(), column.end());
      Floats y(c.n * c.out);
      kernels->linear(x.data(), w.data(), nullptr, y.data(), c.n, c.out, c.in, c.n);
      CHECK(y == Floats(y.size(), y[0]));
    }
}

TEST_CASE("real products are within the error of a sum of products") {
  for (const SimdKernels* kernels : isas_of_this_cpu())
    for (const Case& c : {Case{50, 200, 784}, Case{50, 200, 200}}) {
      CAPTURE(kernels->name);
      Numbers numbers(7);
      const Floats x = numbers.reals(c.n * c.in), w = numbers.reals(c.out * c.in);
      Floats y(c.n * c.out);
      kernels->linear(x.data(), w.data(), nullptr, y.data(), c.n, c.out, c.in, c.n);
      double worst = 0;
      for (size_t r = 0; r < c.n; ++r)
        for (size_t o = 0; o < c.out; ++o) {
          double sum = 0, size = 0;
          for (size_t k = 0; k < c.in; ++k) {
            const double p =
                static_cast<double>(x[r * c.in + k]) * static_cast<double>(w[o * c.in + k]);
            sum += p;
            size += std::abs(p);
          }
          worst = std::max(worst, std::abs(static_cast<double>(y[r * c.out + o]) - sum) / size);
        }
      // A chain of k roundings of 2^-24 each can be off by k * 2^-24; random ones by about the
      // root.
      CHECK(worst < std::sqrt(static_cast<double>(c.in)) * std::ldexp(1.0, -24));
    }
}

}  // namespace
}  // namespace dpt
