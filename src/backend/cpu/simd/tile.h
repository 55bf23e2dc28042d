// The register tile of the outer-product kernels: C[m, n] from A[m, k] and B[k, n], n contiguous.
#pragma once

#include "backend/cpu/simd/vector.h"

namespace dpt::DPT_ISA {

// Rows of a tile of two vectors: the accumulators fill the registers, two vectors of B and a
// broadcast of A still fit.
constexpr int kTileRows = kLanes == 16 ? 14 : 6;
constexpr int kTileColumns = 2 * kLanes;

constexpr size_t pieces(size_t n, size_t most) { return (n + most - 1) / most; }

enum class Store { set, continued };

// What all tiles of one product share. A's element (m, k) is a[m * row + k * step].
struct Product {
  size_t depth;    // k
  const float* a;  // where this tile begins
  size_t row, step;
  const float* b;  // [k, ldb]
  size_t ldb;
  float* c;  // [m, ldc]
  size_t ldc;
  const float* bias;  // [n] added to every row, or null
  // What will be needed after b, fetched beside it, row by row; null: rows of b that follow.
  const float* next = nullptr;
};

// kRows x (kVectors * kLanes) elements; with kMasked only `mask` of the last vector is read and
// written. Each element is one chain of fma over k from 0, or from C's value if kStore is
// continued.
template <int kRows, int kVectors, bool kMasked, Store kStore>
DPT_SIMD void tile(const Product& p, Mask mask) {
  Vector sum[kRows][kVectors];
  DPT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    DPT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const float* at = p.c + r * p.ldc + v * kLanes;
      if constexpr (kStore != Store::continued) {
        sum[r][v] = own_zero();
      } else {
        sum[r][v] = kMasked && v == kVectors - 1 ? load_first(at, mask) : load(at);
      }
    }
  }
  const float* a = p.a;
  const float* b = p.b;
  // Far enough for another core's cache.
  const uintptr_t ahead =
      p.next == nullptr ? 24 * p.ldb * sizeof(float)
                        : reinterpret_cast<uintptr_t>(p.next) - reinterpret_cast<uintptr_t>(b);
  const uintptr_t next_rows = (2 * kRows - 1) * p.row * sizeof(float);  // the last of the next tile
  for (size_t k = 0; k < p.depth; ++k) {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(a) + next_rows));
    Vector right[kVectors];
    DPT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(b) + ahead +
                                                       v * kLanes * sizeof(float)));
      right[v] =
          kMasked && v == kVectors - 1 ? load_first(b + v * kLanes, mask) : load(b + v * kLanes);
    }
    DPT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Vector left = all(a[r * p.row]);
      DPT_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[r][v] = fma(left, right[v], sum[r][v]);
    }
    a += p.step;
    b += p.ldb;
  }
  DPT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    DPT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* at = p.c + r * p.ldc + v * kLanes;
      const bool masked = kMasked && v == kVectors - 1;
      Vector s = sum[r][v];
      if (p.bias != nullptr)
        s = add(s, masked ? load_first(p.bias + v * kLanes, mask) : load(p.bias + v * kLanes));
      if (masked) {
        store_first(at, mask, s);
      } else {
        store(at, s);
      }
    }
  }
}

template <int kRows, int kVectors, bool kMasked, Store kStore>
[[gnu::noinline]] static void tile_function(const Product& p, size_t last) {
  tile<kRows, kVectors, kMasked, kStore>(p, first(last));
}

// One column of tiles: `rows` rows of C, cut into tiles of about the same height, `columns` of
// them, 1 .. kTileColumns.
template <Store kStore, int kRows>
DPT_SIMD void tile_of(const Product& p, size_t rows, size_t columns) {
  if constexpr (kRows > 1) {
    if (rows < static_cast<size_t>(kRows)) {
      tile_of<kStore, kRows - 1>(p, rows, columns);
      return;
    }
  }
  if (columns == kTileColumns) {
    tile_function<kRows, 2, false, kStore>(p, kLanes);
  } else if (columns > kLanes) {
    tile_function<kRows, 2, true, kStore>(p, columns - kLanes);
  } else {
    tile_function<kRows, 1, true, kStore>(p, columns);
  }
}

template <Store kStore>
static void tile_column(Product p, size_t rows, size_t columns) {
  size_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (size_t left = rows; left > 0; --tiles) {
    const size_t height = (left + tiles - 1) / tiles;
    tile_of<kStore, kTileRows>(p, height, columns);
    p.a += height * p.row;
    p.c += height * p.ldc;
    left -= height;
  }
}

}  // namespace dpt::DPT_ISA
