// Sums in double, in an order that only depends on shapes: blocks sum pieces of a fixed size, then
// the pieces are summed.
//
// A term is what is summed: a plain struct with
//   template <class Visitor> void touches(Visitor& v) const;
//   double operator()(int64_t i) const;
// or, for sums by column,
//   static constexpr int kTerms;
//   void operator()(int64_t row, int64_t column, double (&term)[kTerms]) const;
#pragma once

#include <math.h>

#include "backend/cuda/kernels/block.h"
#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/own_kernel.h"

namespace dpt::cuda {

struct Plus {
  template <class T>
  DPT_HOST_DEVICE T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {  // a nan counts as the largest value
  DPT_HOST_DEVICE double operator()(double a, double b) const { return a != a || a > b ? a : b; }
};

// Combines values[0, kThreads) of shared memory into values[0], in a binary tree.
template <int kThreads, class Block, class Values, class Combine = Plus>
DPT_HOST_DEVICE void combine(Block& block, Values values, Combine f = {}) {
  for (int half = kThreads / 2; half > 0; half /= 2)
    block.phase([&](int t, auto& s) {
      auto* v = values(s);
      if (t < half) v[t] = f(v[t], v[t + half]);
    });
}

// partial[block] = the sum of kChunk terms. Combine: Plus, or Larger for the maximum of nonnegative
// terms.
template <class Term, class Combine = Plus>
struct PartialSums {
  static constexpr int kThreads = 256;
  static constexpr int64_t kChunk = 4096;
  Term term;
  double* partial;
  int64_t terms;
  struct Shared {
    double sum[kThreads];
  };
  DPT_HOST_DEVICE static int64_t blocks(int64_t terms) { return (terms + kChunk - 1) / kChunk; }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    term.touches(v);
    v.writes(partial, blocks(terms));
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t begin = block.index() * kChunk;
    const int64_t end = begin + kChunk < terms ? begin + kChunk : terms;
    block.phase([&](int t, Shared& s) {
      double sum = 0;
      for (int64_t i = begin + t; i < end; i += kThreads) sum = Combine{}(sum, term(i));
      s.sum[t] = sum;
    });
    combine<kThreads>(
        block, [](Shared& s) { return s.sum; }, Combine{});
    block.phase([&](int t, Shared& s) {
      if (t == 0) partial[block.index()] = s.sum[0];
    });
  }
};

// total = the sum (or maximum) of `partial`, divided by *divisor unless that is null.
template <class Combine>
struct TotalOf {
  static constexpr int kThreads = 256;
  const double* partial;
  const float* divisor;
  double* total;
  int64_t partials;
  struct Shared {
    double sum[kThreads];
  };
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(partial, partials);
    if (divisor) v.reads(divisor, 1);
    v.writes(total, 1);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    block.phase([&](int t, Shared& s) {
      double sum = 0;
      for (int64_t i = t; i < partials; i += kThreads) sum = Combine{}(sum, partial[i]);
      s.sum[t] = sum;
    });
    combine<kThreads>(
        block, [](Shared& s) { return s.sum; }, Combine{});
    block.phase([&](int t, Shared& s) {
      if (t == 0) *total = divisor ? s.sum[0] / static_cast<double>(*divisor) : s.sum[0];
    });
  }
};
using Total = TotalOf<Plus>;
using LargestTotal = TotalOf<Larger>;

// partial[(chunk * kTerms + k) * columns + column] = the sum of term k over `chunk_rows` rows. With
// one chunk, the sums may be written to `out` directly. A block computes one chunk of 32 columns; 8
// threads share a column.
template <class Term>
struct ColumnSums {
  static constexpr int kAcross = 32, kDown = 8, kThreads = kAcross * kDown;
  static constexpr int kTerms = Term::kTerms;
  Term term;
  double* partial;
  float* out[kTerms];  // null: write to `partial`
  int64_t rows, columns, chunk_rows;
  struct Shared {
    double sum[kTerms][kThreads];
  };
  DPT_HOST_DEVICE int64_t across() const { return (columns + kAcross - 1) / kAcross; }
  DPT_HOST_DEVICE int64_t chunks() const { return (rows + chunk_rows - 1) / chunk_rows; }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    term.touches(v);
    if (!out[0]) v.writes(partial, chunks() * kTerms * columns);
    for (float* o : out)
      if (o) v.writes(o, columns);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t chunk = block.index() / across();
    const int64_t first = block.index() % across() * kAcross;
    const int64_t begin = chunk * chunk_rows;
    const int64_t end = begin + chunk_rows < rows ? begin + chunk_rows : rows;
    block.phase([&](int t, Shared& s) {
      const int64_t column = first + t % kAcross;
      double sum[kTerms] = {};
      if (column < columns)
        for (int64_t row = begin + t / kAcross; row < end; row += kDown) {
          double of_row[kTerms];
          term(row, column, of_row);
          for (int k = 0; k < kTerms; ++k) sum[k] += of_row[k];
        }
      for (int k = 0; k < kTerms; ++k) s.sum[k][t] = sum[k];
    });
    block.phase([&](int t, Shared& s) {
      if (t >= kAcross || first + t >= columns) return;
      for (int k = 0; k < kTerms; ++k) {
        double sum = 0;
        for (int down = 0; down < kDown; ++down) sum += s.sum[k][down * kAcross + t];
        if (out[k])
          out[k][first + t] = static_cast<float>(sum);
        else
          partial[(chunk * kTerms + k) * columns + first + t] = sum;
      }
    });
  }
};

// out[k][column] = the sum over the chunks, in order. counts: also writes `elements` behind the
// last sum, as batch normalization's sums have it.
template <class To, int kTerms>
struct SumChunks {
  const double* partial;
  To* out[kTerms];
  int64_t chunks, columns;
  bool counts;
  double elements;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(partial, chunks * kTerms * columns);
    for (int k = 0; k < kTerms; ++k)
      v.writes(out[k], columns + (counts && k + 1 == kTerms ? 1 : 0));
  }
  DPT_HOST_DEVICE void operator()(int64_t c) const {
    for (int k = 0; k < kTerms && c < columns; ++k) {
      double sum = 0;
      for (int64_t chunk = 0; chunk < chunks; ++chunk)
        sum += partial[(chunk * kTerms + k) * columns + c];
      put(out[k][c], sum);
    }
    if (counts && c == 0) put(out[kTerms - 1][columns], elements);
  }
};

// The rows and columns of a matrix or an image whose columns are channels. x[row, column] is at row
// * columns + column, or in a plain image at (row / inner * columns + column) * inner + row %
// inner, where each channel has `inner` adjacent elements.
struct Rows {
  int64_t columns, inner, elements;
  DPT_HOST_DEVICE int64_t at(int64_t row, int64_t column) const {
    return inner == 1 ? row * columns + column
                      : (row / inner * columns + column) * inner + row % inner;
  }
  // The column of the element at index i in memory.
  DPT_HOST_DEVICE int64_t column(int64_t i) const { return i / inner % columns; }
};

template <class T>
struct ColumnTerm {
  static constexpr int kTerms = 1;
  Rows at;
  const T* x;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(x, at.elements);
  }
  DPT_HOST_DEVICE void operator()(int64_t row, int64_t column, double (&term)[1]) const {
    term[0] = static_cast<double>(number(x[at.at(row, column)]));
  }
};

// The terms of the gradient of prelu's slopes.
template <class T>
struct SlopeTerm {
  static constexpr int kTerms = 1;
  Rows at;
  const T *dy, *x;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(dy, at.elements);
    v.reads(x, at.elements);
  }
  DPT_HOST_DEVICE void operator()(int64_t row, int64_t column, double (&term)[1]) const {
    const int64_t i = at.at(row, column);
    const double v = static_cast<double>(number(x[i]));
    term[0] = v > 0 ? 0 : static_cast<double>(number(dy[i])) * v;
  }
};

using SumKernels =
    KernelList<ColumnSums<ColumnTerm<float>>, ColumnSums<ColumnTerm<Bf16>>,
               ColumnSums<ColumnTerm<F16>>, ColumnSums<SlopeTerm<float>>,
               ColumnSums<SlopeTerm<Bf16>>, ColumnSums<SlopeTerm<F16>>, SumChunks<float, 1>,
               SumChunks<float, 2>, SumChunks<double, 2>, Total, LargestTotal>;

}  // namespace dpt::cuda
