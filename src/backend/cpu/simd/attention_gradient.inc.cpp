// For each block of positions, blocks of the rows that attend to them, each with its weights p and
// the gradients of its scores.
#include "backend/cpu/simd/attention.h"
#include "backend/cpu/simd/attention_operands.h"

namespace dpt::DPT_ISA {
namespace {

constexpr size_t kBlockRows = 4 * kTileRows, kBlockPositions = 64;
constexpr size_t kBlockStride = kBlockPositions + kRowPad;
static_assert(kBlockRows % 2 == 0);

// Operands of a head, without gaps. Unless these are numbers of bf16, q and k are multiplied by the
// scale.
struct Copies {
  const float *queries, *dy;                     // left, a row has words(columns)
  const float *query_rows, *key_rows, *dy_rows;  // right, a row has `columns`
  const float *key_panels, *value_panels;        // right, transposed
  float* along;                                  // dy . y of each position
  // [kBlockRows, kBlockStride] p and the gradients of the scores of a block.
  float *weights, *slopes;
  // The same as operands of pairs: with a depth of rows, and the slopes with a depth of positions.
  float *weight_pairs, *slope_pairs, *slope_rows;
};

template <class Operands>
struct Packing {
  const AttentionHead& h;
  float*& workspace;

  [[gnu::always_inline]] float* left(const float* from, size_t row, float factor) const {
    float* const to = take(workspace, h.positions * words<Operands>(h.columns));
    left_rows<Operands>(from, row, h.positions, h.columns, factor, to);
    return to;
  }
  [[gnu::always_inline]] float* right(const float* from, size_t row, float factor) const {
    float* const to = take(workspace, words<Operands>(h.positions) * h.columns);
    right_rows<Operands>(from, row, h.positions, h.columns, factor, to);
    return to;
  }
  [[gnu::always_inline]] float* panels(const float* from) const {
    const size_t depth = words<Operands>(h.columns);
    float* const to = take(workspace, up_to(h.positions, kTileColumns) * depth);
    right_columns<Operands>(from, h.qkv_row, h.positions, h.columns, to, workspace);
    return to;
  }
};

template <class Operands>
Copies copies_of(const AttentionHead& h, const AttentionGradient& g, float* workspace) {
  const Packing<Operands> pack{h, workspace};
  const float scale = Operands::kIsBf16 ? 1 : scale_of(h);
  Copies c{};
  c.key_panels = pack.panels(h.k);
  c.value_panels = pack.panels(h.v);
  c.queries = pack.left(h.q, h.qkv_row, scale);
  c.dy = pack.left(g.dy, h.y_row, 1);
  c.key_rows = pack.right(h.k, h.qkv_row, scale);
  if constexpr (Operands::kPerWord == 1) {
    c.query_rows = c.queries;
    c.dy_rows = c.dy;
  } else {
    c.query_rows = pack.right(h.q, h.qkv_row, scale);
    c.dy_rows = pack.right(g.dy, h.y_row, 1);
    c.weight_pairs = take(workspace, kBlockRows / 2 * kBlockStride);
    c.slope_pairs = take(workspace, kBlockRows / 2 * kBlockStride);
    c.slope_rows = take(workspace, kBlockRows * kBlockStride);
  }
  c.along = take(workspace, h.positions);
  c.weights = take(workspace, kBlockRows * kBlockStride);
  c.slopes = take(workspace, kBlockRows * kBlockStride);
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
// p * (dy v^T - along), for i < n; by 0 for n <= i < end. For bf16 the scores and the slopes are
// multiplied by `scale`.
template <class Operands>
DPT_SIMD void make_slopes(float* p, float* slopes, size_t n, size_t end, float logsumexp,
                          float along, float scale) {
  const Lanes top = all(logsumexp), d = all(along), factor = all(scale);
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        Lanes score = at.get(p + i);
        if constexpr (Operands::kIsBf16) score = score * factor;
        const Lanes weight = exp_of_low(score - top);
        Lanes slope = weight * (at.get(slopes + i) - d);
        if constexpr (Operands::kIsBf16) slope = slope * factor;
        at.put(p + i, as_factor<Operands>(weight));
        at.put(slopes + i, as_factor<Operands>(slope));
      });
  for (size_t i = n; i < end; ++i) p[i] = slopes[i] = 0;
}

// c = a b, or c += a b unless `first`. For a tile of rows [r, r + height) the depth is limited to
// [begin(r), end(r + height)). p.depth: the whole depth, in factors.
template <class Operands, class Begin, class End>
DPT_SIMD void add_product(const Product& p, size_t rows, size_t columns, bool first, Begin begin,
                          End end) {
  using Dot = typename Operands::Dot;
  size_t tiles = pieces(rows, kTileRows);
  for (size_t r = 0, height; r < rows; r += height, --tiles) {
    height = (rows - r + tiles - 1) / tiles;
    const size_t from = depth_from<Operands>(begin(r)) / Operands::kPerWord;
    const size_t to = words<Operands>(depth_to<Operands>(end(r + height), p.depth));
    Product part = p;
    part.depth = to - from;
    part.a += r * p.row + from * p.step;
    part.b += from * p.ldb;
    part.c += r * p.ldc;
    for (size_t n = 0; n < columns; n += kTileColumns) {
      const size_t width = lesser(columns - n, kTileColumns);
      if (first) {
        tile_of<Store::set, kTileRows, Dot>(part, height, width);
      } else {
        tile_of<Store::continued, kTileRows, Dot>(part, height, width);
      }
      part.b += kTileColumns;
      part.c += kTileColumns;
    }
  }
}

// Rows [r, r + rows), which attend to some of the positions [k, k + width). r and k are even.
struct Block {
  size_t r, rows, k, width;
  bool causal;
  bool first_rows;  // the first block of rows that attends to these positions

  // seen(i): how many of the positions row i attends to. blind(j): how many of the rows do not
  // attend to position j.
  [[gnu::always_inline]] size_t seen(size_t i) const {
    return causal ? lesser(width, r + i + 1 - k) : width;
  }
  [[gnu::always_inline]] size_t blind(size_t j) const {
    return causal && k + j > r ? lesser(rows, k + j - r) : 0;
  }
};

// Computes p and the gradients of the scores of a block.
template <class Operands>
void make_block(const AttentionHead& h, const AttentionGradient& g, const Copies& c,
                const Block& b) {
  using Dot = typename Operands::Dot;
  const size_t depth = words<Operands>(h.columns);
  for (size_t n = 0; n < b.width; n += kTileColumns) {
    const size_t row = b.blind(n);
    Product p{.depth = depth,
              .a = c.queries + (b.r + row) * depth,
              .row = depth,
              .step = 1,
              .b = c.key_panels + (b.k + n) * depth,
              .ldb = kTileColumns,
              .c = c.weights + row * kBlockStride + n,
              .ldc = kBlockStride,
              .bias = nullptr};
    tile_column<Store::set, Dot>(p, b.rows - row, kTileColumns);
    p.a = c.dy + (b.r + row) * depth;
    p.b = c.value_panels + (b.k + n) * depth;
    p.c = c.slopes + row * kBlockStride + n;
    tile_column<Store::set, Dot>(p, b.rows - row, kTileColumns);
  }
  const float scale = scale_of(h);
  for (size_t i = 0; i < b.rows; ++i)
    make_slopes<Operands>(c.weights + i * kBlockStride, c.slopes + i * kBlockStride, b.seen(i),
                          b.width, g.logsumexp[b.r + i], c.along[b.r + i], scale);
  if constexpr (Operands::kPerWord > 1) {
    join_rows(c.weights, kBlockStride, b.rows, b.width, zero(), c.weight_pairs, kBlockStride);
    join_rows(c.slopes, kBlockStride, b.rows, b.width, zero(), c.slope_pairs, kBlockStride);
    join_columns(c.slopes, kBlockStride, b.rows, b.width, 0, c.slope_rows, kBlockStride);
  }
}

template <class Operands>
void add_block(const AttentionHead& h, const AttentionGradient& g, const Copies& c,
               const Block& b) {
  constexpr bool kPairs = Operands::kPerWord > 1;
  const size_t columns = h.columns;
  const auto transposed = [&](const float* a, const float* right, float* to)
      __attribute__((always_inline)) {
    add_product<Operands>(
        {.depth = b.rows,
         .a = a,
         .row = 1,
         .step = kBlockStride,
         .b = right + b.r / Operands::kPerWord * columns,
         .ldb = columns,
         .c = to + b.k * h.qkv_row,
         .ldc = h.qkv_row,
         .bias = nullptr},
        b.width, columns, b.first_rows, [&](size_t j) { return b.blind(j); },
        [&](size_t) { return b.rows; });
  };
  transposed(kPairs ? c.weight_pairs : c.weights, c.dy_rows, g.dv);
  transposed(kPairs ? c.slope_pairs : c.slopes, c.query_rows, g.dk);
  add_product<Operands>(
      {.depth = b.width,
       .a = kPairs ? c.slope_rows : c.slopes,
       .row = kBlockStride,
       .step = 1,
       .b = c.key_rows + b.k / Operands::kPerWord * columns,
       .ldb = columns,
       .c = g.dq + b.r * h.qkv_row,
       .ldc = h.qkv_row,
       .bias = nullptr},
      b.rows, columns, b.k == 0, [](size_t) { return size_t{0}; },
      [&](size_t end) { return b.seen(end - 1); });
}

template <class Operands>
void backward(const AttentionHead& h, const AttentionGradient& g, float* workspace) {
  const Copies c = copies_of<Operands>(h, g, workspace);
  Block b{};
  b.causal = h.causal;
  for (; b.k < h.positions; b.k += b.width) {
    b.width = lesser(h.positions - b.k, kBlockPositions);
    const size_t begin = h.causal ? b.k : 0;
    for (b.r = begin; b.r < h.positions; b.r += b.rows) {
      b.rows = lesser(h.positions - b.r, kBlockRows);
      b.first_rows = b.r == begin;
      make_block<Operands>(h, g, c, b);
      add_block<Operands>(h, g, c, b);
    }
  }
}

}  // namespace

void add_attention_gradient(AttentionVariants& kernels) {
  kernels.floats.backward = backward<AttentionOfFloats>;
  kernels.bf16.backward = backward<AttentionOfBf16>;
  kernels.emulated.backward = backward<AttentionOfPairs<Emulated>>;
#if defined(__AVX512F__)
  kernels.instruction.backward = backward<AttentionOfPairs<Instruction>>;
#endif
}

}  // namespace dpt::DPT_ISA
