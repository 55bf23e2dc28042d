// Forward: the scores of a tile's rows with all positions that they attend to, which stay in L2;
// then softmax; then the product with v. Backward: for each block of positions, blocks of the rows
// that attend to them, each with its weights p and the gradients of its scores.
#include "backend/cpu/simd/attention.h"

#include "backend/cpu/simd/lanes_math.h"
#include "backend/cpu/simd/tile.h"
#include "base/units.h"

namespace dpt::DPT_ISA {
namespace {

constexpr size_t kPad = kLanes;  // so that rows of scores are not a power of two apart

DPT_SIMD size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
DPT_SIMD size_t up_to(size_t n, size_t multiple) { return pieces(n, multiple) * multiple; }

// Takes `n` floats of the workspace, keeping it aligned to cache lines.
DPT_SIMD float* take(float*& workspace, size_t n) {
  float* const taken = workspace;
  workspace += up_to(n, kCacheLine / sizeof(float));
  return taken;
}

DPT_SIMD float scale_of(const AttentionHead& h) {
  return 1 / __builtin_sqrtf(static_cast<float>(h.columns));
}

// to[r, c] = factor * from[r, c]; `to` has no gaps.
void copy_rows(const float* from, size_t stride, size_t rows, size_t columns, float factor,
               float* to) {
  const Lanes f = all(factor);
  for (size_t r = 0; r < rows; ++r, from += stride, to += columns)
    each_vector(
        columns, [&](size_t c, auto at)
                     __attribute__((always_inline)) { at.put(to + c, at.get(from + c) * f); });
}

// Panels of two vectors of rows: panels[r / kTileColumns][c, r % kTileColumns] = from[r, c]. Rows
// behind the last are 0.
void transpose_rows(const float* from, size_t stride, size_t rows, size_t columns, float* panels) {
  for (size_t r = 0; r < rows; r += kLanes) {
    float* const panel = panels + r / kTileColumns * kTileColumns * columns + r % kTileColumns;
    const size_t given = smaller(rows - r, kLanes);
    size_t c = 0;
    if (given == kLanes) {
      const float* at[kLanes];
      for (size_t i = 0; i < kLanes; ++i) at[i] = from + (r + i) * stride;
      for (; c + kLanes <= columns; c += kLanes)
        transpose(at, c, panel + c * kTileColumns, kTileColumns);
    }
    for (; c < columns; ++c)
      for (size_t i = 0; i < kLanes; ++i)
        panel[c * kTileColumns + i] = i < given ? from[(r + i) * stride + c] : 0;
  }
  if (const size_t left = rows % kTileColumns; left > 0 && left <= kLanes) {
    float* const panel = panels + rows / kTileColumns * kTileColumns * columns + kLanes;
    for (size_t c = 0; c < columns; ++c) store(panel + c * kTileColumns, zero());
  }
}

// exp(x) without the upper clamp. REQUIRES: x <= 1 or nan.
DPT_SIMD Lanes exp_of_low(Lanes x) {
  // Below -104 the result is 0; a nan remains a nan.
  const Reduced e = reduce_exp(max(Lanes(-104), x));
  return scale(Lanes(1) + e.expm1_r, e.n);
}

// x[i] = exp(x[i] - top) for i < n, 0 for n <= i < end. Returns the sum.
DPT_SIMD float make_weights(float* x, size_t n, size_t end, Lanes top) {
  Lanes sum = zero();
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        const Lanes e = exp_of_low(at.or_lowest(at.get(x + i)) - top);
        at.put(x + i, e);
        sum += e;
      });
  for (size_t i = n; i < end; ++i) x[i] = 0;
  return sum_of(sum);
}

constexpr size_t kRowSums = 16;  // at least a vector on each instruction set
static_assert(kTileRows <= kRowSums);

// Softmax of `rows` rows of scores without the division. Writes the sums of the weights and
// log(sum(exp(scores))). The first row attends to `seen` positions, each further row to `more`
// more; every row has `end` elements.
void soften(float* scores, size_t stride, size_t rows, size_t seen, size_t more, size_t end,
            float* sums, float* logsumexp) {
  float tops[kRowSums] = {};
  for (size_t i = 0; i < kRowSums; ++i) sums[i] = 1;
  for (size_t i = 0; i < rows; ++i, scores += stride, seen += more) {
    tops[i] = top_of(scores, seen);
    sums[i] = make_weights(scores, seen, end, all(tops[i]));
  }
  for (size_t i = 0; i < kRowSums; i += kLanes)
    store(tops + i, (Lanes(load(tops + i)) + log(load(sums + i))).v);
  for (size_t i = 0; i < rows; ++i) logsumexp[i] = tops[i];
}

void forward(const AttentionHead& h, float* y, float* logsumexp, float* workspace) {
  const size_t columns = h.columns, wide = up_to(h.positions, kTileColumns), stride = wide + kPad;
  float* const keys = take(workspace, wide * columns);
  float* const values = take(workspace, h.positions * columns);
  float* const queries = take(workspace, kTileRows * columns);
  float* const scores = take(workspace, kTileRows * stride);
  transpose_rows(h.k, h.qkv_row, h.positions, columns, keys);
  copy_rows(h.v, h.qkv_row, h.positions, columns, 1, values);
  size_t tiles = pieces(h.positions, kTileRows);
  for (size_t r = 0, rows; r < h.positions; r += rows, --tiles, y += rows * h.y_row) {
    rows = (h.positions - r + tiles - 1) / tiles;
    const size_t end = h.causal ? r + rows : h.positions;
    copy_rows(h.q + r * h.qkv_row, h.qkv_row, rows, columns, scale_of(h), queries);
    for (size_t n = 0; n < end; n += kTileColumns)
      tile_of<Store::set, kTileRows>({.depth = columns,
                                      .a = queries,
                                      .row = columns,
                                      .step = 1,
                                      .b = keys + n * columns,
                                      .ldb = kTileColumns,
                                      .c = scores + n,
                                      .ldc = stride,
                                      .bias = nullptr},
                                     rows, kTileColumns);
    float sums[kRowSums];
    soften(scores, stride, rows, h.causal ? r + 1 : h.positions, h.causal ? 1 : 0, end, sums,
           logsumexp + r);
    for (size_t n = 0; n < columns; n += kTileColumns)
      tile_of<Store::set, kTileRows>({.depth = end,
                                      .a = scores,
                                      .row = stride,
                                      .step = 1,
                                      .b = values + n,
                                      .ldb = columns,
                                      .c = y + n,
                                      .ldc = h.y_row,
                                      .bias = nullptr},
                                     rows, smaller(columns - n, kTileColumns));
    for (size_t i = 0; i < rows; ++i)
      copy_rows(y + i * h.y_row, 0, 1, columns, 1 / sums[i], y + i * h.y_row);
  }
}

constexpr size_t kBlockRows = 4 * kTileRows, kBlockPositions = 64;
constexpr size_t kBlockStride = kBlockPositions + kPad;

// Copies of a head for the backward pass, without gaps.
struct Copies {
  float *queries, *keys;  // both multiplied by the scale
  float* dy;
  float *key_panels, *value_panels;  // transposed
  float* along;                      // dy . y of each position
  // [kBlockRows, kBlockStride] p and the gradients of the scores of a block.
  float *weights, *slopes;
};

Copies copies_of(const AttentionHead& h, const AttentionGradient& g, float* workspace) {
  const size_t n = h.positions * h.columns, wide = up_to(h.positions, kTileColumns) * h.columns;
  Copies c{};
  c.queries = take(workspace, n);
  c.keys = take(workspace, n);
  c.dy = take(workspace, n);
  c.key_panels = take(workspace, wide);
  c.value_panels = take(workspace, wide);
  c.along = take(workspace, h.positions);
  c.weights = take(workspace, kBlockRows * kBlockStride);
  c.slopes = take(workspace, kBlockRows * kBlockStride);
  copy_rows(h.q, h.qkv_row, h.positions, h.columns, scale_of(h), c.queries);
  copy_rows(h.k, h.qkv_row, h.positions, h.columns, scale_of(h), c.keys);
  copy_rows(g.dy, h.y_row, h.positions, h.columns, 1, c.dy);
  transpose_rows(h.k, h.qkv_row, h.positions, h.columns, c.key_panels);
  transpose_rows(h.v, h.qkv_row, h.positions, h.columns, c.value_panels);
  for (size_t r = 0; r < h.positions; ++r) {
    Lanes sum = zero();
    each_vector(
        h.columns, [&](size_t i, auto at) __attribute__((always_inline)) {
          sum = madd(at.get(g.dy + r * h.y_row + i), at.get(g.y + r * h.y_row + i), sum);
        });
    c.along[r] = sum_of(sum);
  }
  return c;
}

// Replaces the scores in `p` by exp(score - logsumexp), and dy v^T in `slopes` by
// p * (dy v^T - along), for i < n; by 0 for n <= i < end.
DPT_SIMD void make_slopes(float* p, float* slopes, size_t n, size_t end, float logsumexp,
                          float along) {
  const Lanes top = all(logsumexp), d = all(along);
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        const Lanes weight = exp_of_low(at.get(p + i) - top);
        at.put(p + i, weight);
        at.put(slopes + i, weight * (at.get(slopes + i) - d));
      });
  for (size_t i = n; i < end; ++i) p[i] = slopes[i] = 0;
}

// c = a b, or c += a b unless `first`. For a tile of rows [r, r + height) the depth is limited to
// [begin(r), end(r + height)).
template <class Begin, class End>
DPT_SIMD void add_product(const Product& p, size_t rows, size_t columns, bool first, Begin begin,
                          End end) {
  size_t tiles = pieces(rows, kTileRows);
  for (size_t r = 0, height; r < rows; r += height, --tiles) {
    height = (rows - r + tiles - 1) / tiles;
    const size_t from = begin(r), to = end(r + height);
    Product part = p;
    part.depth = to - from;
    part.a += r * p.row + from * p.step;
    part.b += from * p.ldb;
    part.c += r * p.ldc;
    for (size_t n = 0; n < columns; n += kTileColumns) {
      const size_t width = smaller(columns - n, kTileColumns);
      if (first) {
        tile_of<Store::set, kTileRows>(part, height, width);
      } else {
        tile_of<Store::continued, kTileRows>(part, height, width);
      }
      part.b += kTileColumns;
      part.c += kTileColumns;
    }
  }
}

// Rows [r, r + rows), which attend to some of the positions [k, k + width).
struct Block {
  size_t r, rows, k, width;
  bool causal;
  bool first_rows;  // the first block of rows that attends to these positions

  // seen(i): how many of the positions row i attends to. blind(j): how many of the rows do not
  // attend to position j.
  [[gnu::always_inline]] size_t seen(size_t i) const {
    return causal ? smaller(width, r + i + 1 - k) : width;
  }
  [[gnu::always_inline]] size_t blind(size_t j) const {
    return causal && k + j > r ? smaller(rows, k + j - r) : 0;
  }
};

// Computes p and the gradients of the scores of a block.
void make_block(const AttentionHead& h, const AttentionGradient& g, const Copies& c,
                const Block& b) {
  const size_t columns = h.columns;
  for (size_t n = 0; n < b.width; n += kTileColumns) {
    const size_t row = b.blind(n);
    Product p{.depth = columns,
              .a = c.queries + (b.r + row) * columns,
              .row = columns,
              .step = 1,
              .b = c.key_panels + (b.k + n) * columns,
              .ldb = kTileColumns,
              .c = c.weights + row * kBlockStride + n,
              .ldc = kBlockStride,
              .bias = nullptr};
    tile_column<Store::set>(p, b.rows - row, kTileColumns);
    p.a = c.dy + (b.r + row) * columns;
    p.b = c.value_panels + (b.k + n) * columns;
    p.c = c.slopes + row * kBlockStride + n;
    tile_column<Store::set>(p, b.rows - row, kTileColumns);
  }
  for (size_t i = 0; i < b.rows; ++i)
    make_slopes(c.weights + i * kBlockStride, c.slopes + i * kBlockStride, b.seen(i), b.width,
                g.logsumexp[b.r + i], c.along[b.r + i]);
}

void add_block(const AttentionHead& h, const AttentionGradient& g, const Copies& c,
               const Block& b) {
  const size_t columns = h.columns;
  const auto transposed = [&](const float* a, const float* right, float* to)
      __attribute__((always_inline)) {
    add_product(
        {.depth = b.rows,
         .a = a,
         .row = 1,
         .step = kBlockStride,
         .b = right + b.r * columns,
         .ldb = columns,
         .c = to + b.k * h.qkv_row,
         .ldc = h.qkv_row,
         .bias = nullptr},
        b.width, columns, b.first_rows, [&](size_t j) { return b.blind(j); },
        [&](size_t) { return b.rows; });
  };
  transposed(c.weights, c.dy, g.dv);
  transposed(c.slopes, c.queries, g.dk);
  add_product(
      {.depth = b.width,
       .a = c.slopes,
       .row = kBlockStride,
       .step = 1,
       .b = c.keys + b.k * columns,
       .ldb = columns,
       .c = g.dq + b.r * h.qkv_row,
       .ldc = h.qkv_row,
       .bias = nullptr},
      b.rows, columns, b.k == 0, [](size_t) { return size_t{0}; },
      [&](size_t end) { return b.seen(end - 1); });
}

void backward(const AttentionHead& h, const AttentionGradient& g, float* workspace) {
  const Copies c = copies_of(h, g, workspace);
  Block b{};
  b.causal = h.causal;
  for (; b.k < h.positions; b.k += b.width) {
    b.width = smaller(h.positions - b.k, kBlockPositions);
    const size_t begin = h.causal ? b.k : 0;
    for (b.r = begin; b.r < h.positions; b.r += b.rows) {
      b.rows = smaller(h.positions - b.r, kBlockRows);
      b.first_rows = b.r == begin;
      make_block(h, g, c, b);
      add_block(h, g, c, b);
    }
  }
}

}  // namespace

void add_attention(AttentionKernels& kernels) {
  kernels.forward = forward;
  kernels.backward = backward;
}

}  // namespace dpt::DPT_ISA
