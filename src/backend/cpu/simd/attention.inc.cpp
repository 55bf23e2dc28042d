// Forward: the scores of a tile's rows with all positions that they attend to, which stay in L2;
// then softmax; then the product with v.
#include "backend/cpu/simd/attention.h"

#include "backend/cpu/simd/attention_operands.h"

namespace dpt::DPT_ISA {
namespace {

// x[i] = exp(factor * (x[i] - top)) for i < n, 0 for n <= i < end, as factors of a product. Returns
// the sum before rounding.
template <class Operands>
DPT_SIMD float make_weights(float* x, size_t n, size_t end, Lanes top, Lanes factor) {
  Lanes sum = zero();
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        Lanes below = at.or_lowest(at.get(x + i)) - top;
        if constexpr (Operands::kIsBf16) below = below * factor;
        const Lanes e = exp_of_low(below);
        at.put(x + i, as_factor<Operands>(e));
        sum += e;
      });
  for (size_t i = n; i < end; ++i) x[i] = 0;
  return sum_of(sum);
}

constexpr size_t kRowSums = 16;  // at least a vector on each instruction set
static_assert(kTileRows <= kRowSums);

// Softmax of `rows` rows of scores, times `factor` for bf16, without the division. Writes the sums
// of the weights and log(sum(exp(scores))). The first row attends to `seen` positions, each further
// row to `more` more; every row has `end` elements.
template <class Operands>
void soften(float* scores, size_t stride, size_t rows, size_t seen, size_t more, size_t end,
            float factor, float* sums, float* logsumexp) {
  float tops[kRowSums] = {};
  for (size_t i = 0; i < kRowSums; ++i) sums[i] = 1;
  for (size_t i = 0; i < rows; ++i, scores += stride, seen += more) {
    tops[i] = top_of(scores, seen);
    sums[i] = make_weights<Operands>(scores, seen, end, all(tops[i]), all(factor));
  }
  for (size_t i = 0; i < kRowSums; i += kLanes) {
    Lanes top = load(tops + i);
    if constexpr (Operands::kIsBf16) top = top * Lanes(all(factor));
    store(tops + i, (top + log(load(sums + i))).v);
  }
  for (size_t i = 0; i < rows; ++i) logsumexp[i] = tops[i];
}

template <class Operands>
void forward(const AttentionHead& h, float* y, float* logsumexp, float* workspace) {
  using Dot = typename Operands::Dot;
  constexpr bool kPairs = Operands::kPerWord > 1;
  const size_t columns = h.columns, wide = up_to(h.positions, kTileColumns);
  const size_t stride = wide + kRowPad, depth = words<Operands>(columns);
  float* const keys = take(workspace, wide * depth);
  float* const values = take(workspace, words<Operands>(h.positions) * columns);
  float* const queries = take(workspace, kTileRows * depth);
  float* const scores = take(workspace, kTileRows * stride);
  float* const pairs = kPairs ? take(workspace, kTileRows * stride) : nullptr;
  right_columns<Operands>(h.k, h.qkv_row, h.positions, columns, keys, workspace);
  right_rows<Operands>(h.v, h.qkv_row, h.positions, columns, 1, values);
  const float scale = scale_of(h);
  size_t tiles = pieces(h.positions, kTileRows);
  for (size_t r = 0, rows; r < h.positions; r += rows, --tiles, y += rows * h.y_row) {
    rows = (h.positions - r + tiles - 1) / tiles;
    const size_t end = depth_to<Operands>(h.causal ? r + rows : h.positions, h.positions);
    left_rows<Operands>(h.q + r * h.qkv_row, h.qkv_row, rows, columns,
                        Operands::kIsBf16 ? 1 : scale, queries);
    for (size_t n = 0; n < end; n += kTileColumns)
      tile_of<Store::set, kTileRows, Dot>({.depth = depth,
                                           .a = queries,
                                           .row = depth,
                                           .step = 1,
                                           .b = keys + n * depth,
                                           .ldb = kTileColumns,
                                           .c = scores + n,
                                           .ldc = stride,
                                           .bias = nullptr},
                                          rows, kTileColumns);
    float sums[kRowSums];
    soften<Operands>(scores, stride, rows, h.causal ? r + 1 : h.positions, h.causal ? 1 : 0, end,
                     scale, sums, logsumexp + r);
    if constexpr (kPairs) join_columns(scores, stride, rows, end, 0, pairs, stride);
    for (size_t n = 0; n < columns; n += kTileColumns)
      tile_of<Store::set, kTileRows, Dot>({.depth = words<Operands>(end),
                                           .a = kPairs ? pairs : scores,
                                           .row = stride,
                                           .step = 1,
                                           .b = values + n,
                                           .ldb = columns,
                                           .c = y + n,
                                           .ldc = h.y_row,
                                           .bias = nullptr},
                                          rows, lesser(columns - n, kTileColumns));
    for (size_t i = 0; i < rows; ++i)
      copy_rows(y + i * h.y_row, 0, 1, columns, 1 / sums[i], y + i * h.y_row);
  }
}

}  // namespace

void add_attention(AttentionVariants& kernels) {
  kernels.floats.forward = forward<AttentionOfFloats>;
  kernels.bf16.forward = forward<AttentionOfBf16>;
  kernels.emulated.forward = forward<AttentionOfPairs<Emulated>>;
#if defined(__AVX512F__)
  kernels.instruction.forward = forward<AttentionOfPairs<Instruction>>;
#endif
}

}  // namespace dpt::DPT_ISA
