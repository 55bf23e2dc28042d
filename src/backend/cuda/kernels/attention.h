// Attention with heads of any width, and its gradient. Formulas:
// graph/operators/products/attention.cpp.
//
// Note [tiles]: a block computes kOwn rows of one head of one sample, kWide columns of them. It
// loops over the rows of the other operand, kOther at a time and in order: it multiplies its own
// rows with them, keeps the softmax of the products in shared memory, and adds the other rows,
// weighted by it, to sums in registers. Each thread has the sums of one row and every kAcross-th
// column. So the memory does not grow with the sequence length, and the order of each sum is fixed.
#pragma once

#include <math.h>

#include "backend/cuda/kernels/block.h"
#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/own_kernel.h"

namespace dpt::cuda {

struct AttentionTiles {
  static constexpr int kThreads = 256, kOwn = 16, kOther = 32, kDepth = 32, kWide = 128;
  static constexpr int kAcross = kThreads / kOwn;  // threads per row
};

// Shared memory of a block.
struct AttentionShared : AttentionTiles {
  float own[kOwn][kDepth + 1], other[kOther][kDepth + 1];  // kDepth columns of both operands
  float weight[kOwn][kOther + 1], slope[kOwn][kOther + 1];
  float wide[kOther][kWide];  // the other rows that are added
  float largest[kOwn], sum[kOwn], factor[kOwn];
};

// The rows of one head, padded with zeros: at() outside of [rows, columns] is 0, store() does
// nothing.
template <class T>
struct HeadRows {
  T* first;
  int64_t step, rows, columns;
  DPT_HOST_DEVICE bool has(int64_t row, int64_t column) const {
    return row < rows && column < columns;
  }
  DPT_HOST_DEVICE float at(int64_t row, int64_t column) const {
    return has(row, column) ? number(first[row * step + column]) : 0.0F;
  }
  DPT_HOST_DEVICE void store(int64_t row, int64_t column, float x) const {
    if (has(row, column)) put(first[row * step + column], x);
  }
};

// What a block computes: rows from `row` and columns from `column` of one head.
struct AttentionBlock {
  int64_t sample, head, row, column;
};

enum class HeadPart : int { q, k, v };

struct AttentionShape {
  int64_t samples, positions, heads, columns;  // columns: of one head
  bool causal;
  float scale;  // factor of q . k

  DPT_HOST_DEVICE int64_t tiles() const {
    return (positions + AttentionTiles::kOwn - 1) / AttentionTiles::kOwn;
  }
  DPT_HOST_DEVICE int64_t chunks() const {
    return (columns + AttentionTiles::kWide - 1) / AttentionTiles::kWide;
  }
  int64_t blocks() const { return samples * heads * tiles() * chunks(); }
  DPT_HOST_DEVICE int64_t rows() const { return samples * heads * positions; }
  DPT_HOST_DEVICE int64_t elements() const { return rows() * columns; }  // of y
  DPT_HOST_DEVICE AttentionBlock block(int64_t i) const {
    const int64_t tile = i / chunks(), head = tile / tiles();
    return {.sample = head / heads,
            .head = head % heads,
            .row = tile % tiles() * AttentionTiles::kOwn,
            .column = i % chunks() * AttentionTiles::kWide};
  }
  DPT_HOST_DEVICE bool sees(int64_t query, int64_t key) const {
    return key < positions && (!causal || key <= query);
  }
  // End of the range of keys that the rows of a block starting at `row` attend to.
  DPT_HOST_DEVICE int64_t seen_end(int64_t row) const {
    const int64_t end = row + AttentionTiles::kOwn;
    return causal && end < positions ? end : positions;
  }
  // One head of y or dy [N, T, E].
  template <class T>
  DPT_HOST_DEVICE HeadRows<T> of(T* y, const AttentionBlock& b) const {
    const int64_t step = heads * columns;
    return {y + b.sample * positions * step + b.head * columns, step, positions, columns};
  }
  // One head of a part of qkv or its gradient [N, T, 3 E].
  template <class T>
  DPT_HOST_DEVICE HeadRows<T> of(T* qkv, const AttentionBlock& b, HeadPart part) const {
    const int64_t e = heads * columns;
    return {qkv + (b.sample * positions * 3 + static_cast<int64_t>(part)) * e + b.head * columns,
            3 * e, positions, columns};
  }
  // Reports to a Visitor that a part of the gradient [N, T, 3 E] is written.
  template <class Visitor, class T>
  void writes(Visitor& v, T* dqkv, HeadPart part) const {
    const int64_t e = heads * columns;
    for (int64_t row = 0; row < samples * positions; ++row)
      v.writes(dqkv + (3 * row + static_cast<int64_t>(part)) * e, e);
  }
  // Index of a head's first element in [N, heads, T].
  DPT_HOST_DEVICE int64_t first(const AttentionBlock& b) const {
    return (b.sample * heads + b.head) * positions;
  }
};

// Registers of a thread: products of its row with every kAcross-th of the other rows, and sums.
struct AttentionProducts {
  float of[AttentionTiles::kOther / AttentionTiles::kAcross];
};
struct AttentionSums {
  float of[AttentionTiles::kWide / AttentionTiles::kAcross];
};

// The steps that the kernels below have in common.
template <class Block>
struct AttentionSteps : AttentionTiles {
  using Shared = AttentionShared;
  Block& block;
  DPT_HOST_DEVICE explicit AttentionSteps(Block& of) : block(of) {}

  DPT_HOST_DEVICE static int left(int64_t n, int most) {
    return n < most ? static_cast<int>(n) : most;
  }

  // Loads kColumns of each row of `to`. A thread loads elements of one column.
  template <int kColumns, class T, int kRows, int kStep>
  DPT_HOST_DEVICE static void load(int t, const HeadRows<T>& from, int64_t row, int64_t column,
                                   float (&to)[kRows][kStep]) {
    for (int i = t / kColumns; i < kRows; i += kThreads / kColumns)
      to[i][t % kColumns] = from.at(row + i, column + t % kColumns);
  }

  // to = products of the block's own rows, from `row`, with the other rows, from `other`.
  template <class T, class Products>
  DPT_HOST_DEVICE void multiply(const HeadRows<T>& own, int64_t row, const HeadRows<T>& others,
                                int64_t other, Products& to) const {
    block.phase([&](int t, Shared&) { to[t] = {}; });
    for (int64_t column = 0; column < own.columns; column += kDepth) {
      block.phase([&](int t, Shared& s) {
        load<kDepth>(t, own, row, column, s.own);
        load<kDepth>(t, others, other, column, s.other);
      });
      const int deep = left(own.columns - column, kDepth);
      block.phase([&](int t, Shared& s) {
        for (int d = 0; d < deep; ++d)
          for (int k = 0; k < kOther / kAcross; ++k)
            to[t].of[k] += s.own[t / kAcross][d] * s.other[t % kAcross + k * kAcross][d];
      });
    }
  }

  // Calls f(thread, shared, own row, other row, index of the product in the thread) for each
  // product.
  template <class F>
  DPT_HOST_DEVICE void each(F f) const {
    block.phase([&](int t, Shared& s) {
      for (int k = 0; k < kOther / kAcross; ++k) f(t, s, t / kAcross, t % kAcross + k * kAcross, k);
    });
  }

  // Adds the other rows from `other` (columns from `column`), multiplied by weights, to the sums.
  template <class T, class Sums, class Weights>
  DPT_HOST_DEVICE void add(const HeadRows<T>& others, int64_t other, int64_t column, Sums& sums,
                           Weights weights) const {
    block.phase([&](int t, Shared& s) { load<kWide>(t, others, other, column, s.wide); });
    const int many = left(others.rows - other, kOther), wide = left(others.columns - column, kWide);
    block.phase([&](int t, Shared& s) {
      for (int j = 0; j < many; ++j) {
        const float weight = weights(s)[t / kAcross][j];
        for (int k = 0; k < kWide / kAcross; ++k)
          if (k * kAcross < wide) sums[t].of[k] += weight * s.wide[j][t % kAcross + k * kAcross];
      }
    });
  }

  template <class T, class Sums>
  DPT_HOST_DEVICE void store(const HeadRows<T>& to, const AttentionBlock& at, Sums& sums) const {
    block.phase([&](int t, Shared&) {
      for (int k = 0; k < kWide / kAcross; ++k)
        to.store(at.row + t / kAcross, at.column + t % kAcross + k * kAcross, sums[t].of[k]);
    });
  }
};

// Online softmax: the largest score of a row may grow with each tile, and past sums are then
// multiplied by a factor.
template <class T>
struct AttentionForward {
  static constexpr int kThreads = AttentionTiles::kThreads;
  using Shared = AttentionShared;
  AttentionShape s;
  const T* qkv;
  T* y;
  float* logsumexp;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(qkv, 3 * s.elements());
    v.writes(y, s.elements());
    v.writes(logsumexp, s.rows());
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const AttentionSteps<Block> steps(block);
    constexpr int kOwn = AttentionTiles::kOwn, kOther = AttentionTiles::kOther,
                  kAcross = AttentionTiles::kAcross;
    const AttentionBlock at = s.block(block.index());
    const auto q = s.of(qkv, at, HeadPart::q), k = s.of(qkv, at, HeadPart::k),
               v = s.of(qkv, at, HeadPart::v);
    auto scores = block.template per_thread<AttentionProducts>();
    auto sums = block.template per_thread<AttentionSums>();
    block.phase([&](int t, Shared& m) {
      sums[t] = {};
      if (t < kOwn) m.largest[t] = -INFINITY, m.sum[t] = 0;
    });
    const int64_t end = s.seen_end(at.row);
    for (int64_t other = 0; other < end; other += kOther) {
      steps.multiply(q, at.row, k, other, scores);
      steps.each([&](int t, Shared& m, int row, int column, int i) {
        m.weight[row][column] =
            s.sees(at.row + row, other + column) ? s.scale * scores[t].of[i] : -INFINITY;
      });
      block.phase([&](int t, Shared& m) {
        if (t >= kOwn) return;
        float largest = m.largest[t];
        for (int j = 0; j < kOther; ++j)
          if (m.weight[t][j] > largest) largest = m.weight[t][j];
        m.factor[t] = ::expf(m.largest[t] - largest);
        m.largest[t] = largest;
      });
      steps.each([&](int, Shared& m, int row, int column, int) {
        m.weight[row][column] = ::expf(m.weight[row][column] - m.largest[row]);
      });
      block.phase([&](int t, Shared& m) {
        for (float& x : sums[t].of) x *= m.factor[t / kAcross];
        if (t >= kOwn) return;
        m.sum[t] *= m.factor[t];
        for (int j = 0; j < kOther; ++j) m.sum[t] += m.weight[t][j];
      });
      steps.add(v, other, at.column, sums, [](Shared& m) { return m.weight; });
    }
    block.phase([&](int t, Shared& m) {
      for (float& x : sums[t].of) x /= m.sum[t / kAcross];
      if (t < kOwn && at.row + t < s.positions && at.column == 0)
        logsumexp[s.first(at) + at.row + t] = m.largest[t] + ::logf(m.sum[t]);
    });
    steps.store(s.of(y, at), at, sums);
  }
};

// dots [N, heads, T] = dy . y for each position and head, used by the gradient of softmax.
template <class T>
struct AttentionDots {
  AttentionShape s;
  const T *dy, *y;
  float* dots;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(dy, s.elements());
    v.reads(y, s.elements());
    v.writes(dots, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t position = i % s.positions, head = i / s.positions;
    const AttentionBlock at{
        .sample = head / s.heads, .head = head % s.heads, .row = 0, .column = 0};
    const auto a = s.of(dy, at), b = s.of(y, at);
    float sum = 0;
    for (int64_t c = 0; c < s.columns; ++c) sum += a.at(position, c) * b.at(position, c);
    dots[i] = sum;
  }
};

// The inputs of both gradient kernels.
template <class T>
struct AttentionOperands {
  const T *dy, *qkv;
  const float *logsumexp, *dots;
  template <class Visitor>
  void touches(Visitor& v, const AttentionShape& s) const {
    v.reads(dy, s.elements());
    v.reads(qkv, 3 * s.elements());
    v.reads(logsumexp, s.rows());
    v.reads(dots, s.rows());
  }
};

// Weights and their gradients for the queries of one head.
template <class T>
struct QueryTerms {
  const AttentionShape& s;
  const AttentionOperands<T>& in;
  int64_t first;  // index of the head's first element in [N, heads, T]
  DPT_HOST_DEVICE float weight(int64_t query, int64_t key, float product) const {
    if (query >= s.positions || !s.sees(query, key)) return 0;
    return ::expf(s.scale * product - in.logsumexp[first + query]);
  }
  // Gradient of the score. product: dy . v of this query and key.
  DPT_HOST_DEVICE float slope(int64_t query, float weight, float product) const {
    return query < s.positions ? s.scale * weight * (product - in.dots[first + query]) : 0.0F;
  }
};

template <class T>
struct AttentionQueryGradient {
  static constexpr int kThreads = AttentionTiles::kThreads;
  using Shared = AttentionShared;
  AttentionShape s;
  AttentionOperands<T> in;
  T* dqkv;  // [N, T, 3 E]; only dq is written
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    in.touches(v, s);
    s.writes(v, dqkv, HeadPart::q);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const AttentionSteps<Block> steps(block);
    constexpr int kOther = AttentionTiles::kOther;
    const AttentionBlock at = s.block(block.index());
    const auto q = s.of(in.qkv, at, HeadPart::q), k = s.of(in.qkv, at, HeadPart::k),
               v = s.of(in.qkv, at, HeadPart::v), dy = s.of(in.dy, at);
    const QueryTerms<T> terms{s, in, s.first(at)};
    auto products = block.template per_thread<AttentionProducts>();
    auto sums = block.template per_thread<AttentionSums>();
    block.phase([&](int t, Shared&) { sums[t] = {}; });
    const int64_t end = s.seen_end(at.row);
    for (int64_t other = 0; other < end; other += kOther) {
      steps.multiply(q, at.row, k, other, products);
      steps.each([&](int t, Shared& m, int row, int column, int i) {
        m.weight[row][column] = terms.weight(at.row + row, other + column, products[t].of[i]);
      });
      steps.multiply(dy, at.row, v, other, products);
      steps.each([&](int t, Shared& m, int row, int column, int i) {
        m.slope[row][column] = terms.slope(at.row + row, m.weight[row][column], products[t].of[i]);
      });
      steps.add(k, other, at.column, sums, [](Shared& m) { return m.slope; });
    }
    steps.store(s.of(dqkv, at, HeadPart::q), at, sums);
  }
};

// Own rows are keys and values; the other rows are the queries that attend to them.
template <class T>
struct AttentionKeyGradient {
  static constexpr int kThreads = AttentionTiles::kThreads;
  using Shared = AttentionShared;
  AttentionShape s;
  AttentionOperands<T> in;
  T* dqkv;  // [N, T, 3 E]; only dk and dv are written
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    in.touches(v, s);
    s.writes(v, dqkv, HeadPart::k);
    s.writes(v, dqkv, HeadPart::v);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const AttentionSteps<Block> steps(block);
    constexpr int kOther = AttentionTiles::kOther;
    const AttentionBlock at = s.block(block.index());
    const auto q = s.of(in.qkv, at, HeadPart::q), k = s.of(in.qkv, at, HeadPart::k),
               v = s.of(in.qkv, at, HeadPart::v), dy = s.of(in.dy, at);
    const QueryTerms<T> terms{s, in, s.first(at)};
    auto products = block.template per_thread<AttentionProducts>();
    auto dk = block.template per_thread<AttentionSums>();
    auto dv = block.template per_thread<AttentionSums>();
    block.phase([&](int t, Shared&) { dk[t] = dv[t] = {}; });
    for (int64_t other = s.causal ? at.row : 0; other < s.positions; other += kOther) {
      steps.multiply(k, at.row, q, other, products);
      steps.each([&](int t, Shared& m, int row, int column, int i) {
        m.weight[row][column] = terms.weight(other + column, at.row + row, products[t].of[i]);
      });
      steps.multiply(v, at.row, dy, other, products);
      steps.each([&](int t, Shared& m, int row, int column, int i) {
        m.slope[row][column] =
            terms.slope(other + column, m.weight[row][column], products[t].of[i]);
      });
      steps.add(q, other, at.column, dk, [](Shared& m) { return m.slope; });
      steps.add(dy, other, at.column, dv, [](Shared& m) { return m.weight; });
    }
    steps.store(s.of(dqkv, at, HeadPart::k), at, dk);
    steps.store(s.of(dqkv, at, HeadPart::v), at, dv);
  }
};

using AttentionKernels =
    KernelList<AttentionForward<float>, AttentionDots<float>, AttentionQueryGradient<float>,
               AttentionKeyGradient<float>, AttentionForward<Bf16>, AttentionDots<Bf16>,
               AttentionQueryGradient<Bf16>, AttentionKeyGradient<Bf16>, AttentionForward<F16>,
               AttentionDots<F16>, AttentionQueryGradient<F16>, AttentionKeyGradient<F16>>;

}  // namespace dpt::cuda
