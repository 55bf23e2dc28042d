// Matrix products of a linear layer.
//
// Note [layouts]: in y = x w^T both operands are contiguous in k; in matmul and the weight gradient
// one operand is contiguous in n. So x w^T needs different kernels. There are two for it, and the
// shapes and the usual number of rows decide:
//   - dots: a tile of dot products with lanes along k, which are summed at the end. These sums cost
//     about 45 / K of the time.
//   - panels: 2 vectors of rows of w are transposed into a panel [k, o] that stays in L1, followed
//     by the outer-product tile. The transposition costs about 10 / N.
#include "backend/cpu/simd/linear_order.h"
#include "backend/cpu/simd/pairs.h"
#include "backend/cpu/simd/tables.h"
#include "backend/cpu/simd/tile.h"
#include "base/units.h"

namespace dpt::DPT_ISA {
namespace {

constexpr int kDotX = kLanes == 16 ? 5 : 3, kDotW = kLanes == 16 ? 5 : 4;

struct Dots {
  const float* x;
  const float* w;
  const float* bias;
  float* y;
  size_t depth, ldy;
  // Prefetched meanwhile: a line for each vector of k.
  const char* ahead;
  size_t ahead_step;
};

template <int kX, int kW>
[[gnu::noinline]] void dot_tile(const Dots& d) {
  Vector sum[kX * kW];
  DPT_UNROLL
  for (int i = 0; i < kX * kW; ++i) sum[i] = zero();
  const size_t depth = d.depth;
  const auto round = [&](auto&& load_lanes, size_t k) __attribute__((always_inline)) {
    Vector left[kX];
    DPT_UNROLL
    for (int i = 0; i < kX; ++i) left[i] = load_lanes(d.x + i * depth + k);
    DPT_UNROLL
    for (int j = 0; j < kW; ++j) {
      const Vector right = load_lanes(d.w + j * depth + k);
      DPT_UNROLL
      for (int i = 0; i < kX; ++i) sum[i * kW + j] = fma(left[i], right, sum[i * kW + j]);
    }
  };
  const char* ahead = d.ahead;
  size_t k = 0;
  for (; k + kLanes <= depth; k += kLanes, ahead += d.ahead_step) {
    __builtin_prefetch(ahead, 0, 2);  // into L2: L1 is full of x and w
    round(
        [](const float* p) __attribute__((always_inline)) { return load(p); }, k);
  }
  if (k < depth) {
    const Mask mask = first(depth - k);
    round(
        [mask](const float* p) __attribute__((always_inline)) { return load_first(p, mask); }, k);
  }
  float out[kX * kW];
  sum_lanes<kX * kW>(sum, out);
  for (int i = 0; i < kX; ++i)
    for (int j = 0; j < kW; ++j)
      d.y[i * d.ldy + j] = out[i * kW + j] + (d.bias != nullptr ? d.bias[j] : 0.0F);
}

template <int kX, int kW>
void dots(const Dots& d, size_t rows, size_t columns) {
  if constexpr (kX > 1) {
    if (rows < static_cast<size_t>(kX)) return dots<kX - 1, kW>(d, rows, columns);
  }
  if constexpr (kW > 1) {
    if (columns < static_cast<size_t>(kW)) return dots<kX, kW - 1>(d, rows, columns);
  }
  dot_tile<kX, kW>(d);
}

// The outer loop runs over rows of w, so w is read once: it may have to come from another core's
// cache. The next rows are prefetched while the current ones are multiplied with all of x.
void linear_by_dots(const float* x, const float* w, const float* bias, float* y, size_t n,
                    size_t out, size_t in) {
  const size_t all_x_tiles = (n + kDotX - 1) / kDotX, vectors = in / kLanes;
  const size_t ahead_step = kDotW * in * sizeof(float) / (all_x_tiles * vectors + 1) + 1;
  size_t w_tiles = (out + kDotW - 1) / kDotW;
  for (size_t o = 0, height; o < out; o += height, --w_tiles) {
    height = (out - o + w_tiles - 1) / w_tiles;
    const size_t next = o + height < out ? o + height : o;
    const char* ahead = reinterpret_cast<const char*>(w + next * in);
    size_t x_tiles = all_x_tiles;
    for (size_t r = 0, rows; r < n; r += rows, --x_tiles, ahead += vectors * ahead_step) {
      rows = (n - r + x_tiles - 1) / x_tiles;
      dots<kDotX, kDotW>({.x = x + r * in,
                          .w = w + o * in,
                          .bias = bias != nullptr ? bias + o : nullptr,
                          .y = y + r * out + o,
                          .depth = in,
                          .ldy = out,
                          .ahead = ahead,
                          .ahead_step = ahead_step},
                         rows, height);
    }
  }
}

constexpr size_t kPanelDepth = 256;  // 256 x 2 vectors: 32 KiB with AVX-512

// panel[k - begin, o] = w[o, k]. Missing rows of w repeat the last one; their results are not
// stored.
void fill_panel(const float* w, size_t in, size_t columns, size_t begin, size_t end, float* panel) {
  const float* rows[kTileColumns];
  for (size_t o = 0; o < kTileColumns; ++o) rows[o] = w + (o < columns ? o : columns - 1) * in;
  size_t k = begin;
  for (; k + kLanes <= end; k += kLanes, panel += kLanes * kTileColumns) {
    transpose(rows, k, panel, kTileColumns);
    if (columns > kLanes) transpose(rows + kLanes, k, panel + kLanes, kTileColumns);
  }
  for (; k < end; ++k, panel += kTileColumns)
    for (size_t o = 0; o < kTileColumns; ++o) panel[o] = rows[o][k];
}

void linear_by_panels(const float* x, const float* w, const float* bias, float* y, size_t n,
                      size_t out, size_t in) {
  alignas(64) float panel[kPanelDepth * kTileColumns];
  for (size_t o = 0; o < out; o += kTileColumns) {
    const size_t columns = out - o < kTileColumns ? out - o : kTileColumns;
    for (size_t k = 0; k < in; k += kPanelDepth) {
      const size_t end = in - k < kPanelDepth ? in : k + kPanelDepth;
      fill_panel(w + o * in, in, columns, k, end, panel);
      const Product p{.depth = end - k,
                      .a = x + k,
                      .row = in,
                      .step = 1,
                      .b = panel,
                      .ldb = kTileColumns,
                      .c = y + o,
                      .ldc = out,
                      .bias = bias != nullptr && end == in ? bias + o : nullptr,
                      // The next panel's rows of w have the size of this panel.
                      .next = in <= kPanelDepth && o + kTileColumns < out
                                  ? w + (o + kTileColumns) * in
                                  : nullptr};
      if (k == 0) {
        tile_column<Store::set>(p, n, columns);
      } else {
        tile_column<Store::continued>(p, n, columns);
      }
    }
  }
}

void linear(const float* x, const float* w, const float* bias, float* y, size_t n, size_t out,
            size_t in, size_t usual_n) {
  if (linear_is_chains(usual_n, in) && out > kLanes) {
    linear_by_panels(x, w, bias, y, n, out, in);
  } else {
    linear_by_dots(x, w, bias, y, n, out, in);
  }
}

// c [m, n] = a b [k, n], with a and c as in `p`, which is at column 0. The outer loop runs over
// columns of tiles.
//
// Note [long rows]: where the rows of b are pages apart, each column of tiles would wait for the
// translation of an address per row and tile, and the rows would fight for few positions of L1; so
// that part of b is copied into a panel first. The copy costs about 2 / m.
constexpr size_t kLongRow = kPage / sizeof(float);
constexpr size_t kCopiedDepth = 512;

template <Store kStore>
void outer_product(Product p, size_t m, size_t n) {
  const float* const b = p.b;
  float* const c = p.c;
  const float* const bias = p.bias;
  const bool copies = p.ldb >= kLongRow && m > kTileRows && p.depth <= kCopiedDepth;
  alignas(64) float panel[kCopiedDepth * kTileColumns];
  for (size_t i = 0; i < n; i += kTileColumns) {
    const size_t columns = n - i < kTileColumns ? n - i : kTileColumns;
    p.b = b + i;
    p.c = c + i;
    p.bias = bias != nullptr ? bias + i : nullptr;
    if (copies) {
      for (size_t k = 0; k < p.depth; ++k) {
        for (size_t l = 0; l < columns; l += kLanes) {
          const Mask mask = first(columns - l < kLanes ? columns - l : kLanes);
          store(panel + k * kTileColumns + l, load_first(b + k * p.ldb + i + l, mask));
        }
        __builtin_prefetch(b + k * p.ldb + i + kTileColumns, 0, 2);
        __builtin_prefetch(b + k * p.ldb + i + kTileColumns + 16, 0, 2);
      }
      Product copied = p;
      copied.b = panel;
      copied.ldb = kTileColumns;
      tile_column<kStore>(copied, m, columns);
    } else {
      tile_column<kStore>(p, m, columns);
    }
  }
}

// c [m, n] = a [m, k] b [k, n] (+ bias), with a and c as in `p`. continued: c holds the chains so
// far.
void product(Product p, size_t m, size_t n, bool continued = false) {
  // Empty arrays may be null, and no offset may be added to null.
  if (p.depth == 0) p.a = p.b = p.c;
  // A strip of b that is two vectors wide and this deep would not stay in L1 for all tiles of a
  // column. The blocks of pairs.h do, even without zeros.
  constexpr size_t kDeep = 256;
  const bool deep = p.row != 1 && p.depth > kDeep && n >= 4 * kLanes;
  if (deep || has_zeros(p, m, n)) return pair_product(p, m, n, continued);
  const Product all = p;
  const size_t depth = p.ldb < kLongRow ? p.depth : kCopiedDepth;
  for (size_t k = 0; k == 0 || k < all.depth; k += p.depth) {
    const size_t left = all.depth - k;
    p.depth = left < depth ? left : depth;
    p.a = all.a + k * all.step;
    p.b = all.b + k * all.ldb;
    p.bias = left <= depth ? all.bias : nullptr;
    if (k == 0 && !continued) {
      outer_product<Store::set>(p, m, n);
    } else {
      outer_product<Store::continued>(p, m, n);
    }
    if (p.depth == 0) return;
  }
}

void matmul(const float* x, const float* w, const float* bias, float* y, size_t n, size_t out,
            size_t in) {
  product({.depth = in,
           .a = x,
           .row = in,
           .step = 1,
           .b = w,
           .ldb = out,
           .c = y,
           .ldc = out,
           .bias = bias},
          n, out);
}

void linear_weight_gradient(const float* dy, size_t stride, const float* x, float* dw, size_t n,
                            size_t out, size_t in, bool continued) {
  product({.depth = n,
           .a = dy,
           .row = 1,
           .step = stride,
           .b = x,
           .ldb = in,
           .c = dw,
           .ldc = in,
           .bias = nullptr},
          out, in, continued);
}

// Each column is one chain over n, whatever the number of columns.
void sum_rows(const float* dy, float* db, size_t n, size_t out) {
  constexpr size_t kColumns = 8 * kLanes;  // enough chains to hide the latency of an addition
  size_t o = 0;
  for (; o + kColumns <= out; o += kColumns) {
    Vector sum[8];
    DPT_UNROLL
    for (int v = 0; v < 8; ++v) sum[v] = zero();
    for (size_t r = 0; r < n; ++r) {
      DPT_UNROLL
      for (int v = 0; v < 8; ++v) sum[v] = add(sum[v], load(dy + r * out + o + v * kLanes));
    }
    DPT_UNROLL
    for (int v = 0; v < 8; ++v) store(db + o + v * kLanes, sum[v]);
  }
  for (; o < out; o += kLanes) {
    const Mask mask = first(out - o < kLanes ? out - o : kLanes);
    Vector sum = zero();
    for (size_t r = 0; r < n; ++r) sum = add(sum, load_first(dy + r * out + o, mask));
    store_first(db + o, mask, sum);
  }
}

}  // namespace

void add_linear(SimdKernels& kernels) {
  kernels.linear = linear;
  kernels.matmul = matmul;
  kernels.linear_weight_gradient = linear_weight_gradient;
  kernels.sum_rows = sum_rows;
}

}  // namespace dpt::DPT_ISA
