// The register tile of outer-product kernels: C [m, n] = A [m, k] B [k, n] with contiguous n.
#pragma once

#include "backend/cpu/simd/vector.h"

namespace dpt::DPT_ISA {

// Rows of a tile that is two vectors wide: the accumulators, two vectors of B and a broadcast
// element of A fill the registers.
constexpr int kTileRows = kLanes == 16 ? 14 : 6;
constexpr int kTileColumns = 2 * kLanes;

constexpr size_t pieces(size_t n, size_t most) { return (n + most - 1) / most; }

enum class Store { set, continued };

// How words of A and B are multiplied; a word is a float.
struct SinglePrecision {
  DPT_SIMD Vector multiply(Vector a, Vector b, Vector sum) { return fma(a, b, sum); }
};

// The operands of a product, which all its tiles share. Word (m, k) of A is a[m * row + k * step].
struct Product {
  size_t depth;    // k, in words
  const float* a;  // at the current tile
  size_t row, step;
  const float* b;  // [k, ldb]
  size_t ldb;
  float* c;  // [m, ldc]
  size_t ldc;
  const float* bias;  // [n] added to every row; may be null
  // Needed after b, so it is prefetched row by row. null: the following rows of b.
  const float* next = nullptr;
};

// kRows x (kVectors * kLanes) elements of C. kMasked: only `mask` of the last vector is read and
// written. Each element is one chain of Dot::multiply over k, starting at 0, or at C's value if
// kStore is `continued`.
template <class Dot, int kRows, int kVectors, bool kMasked, Store kStore>
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
  // Far enough ahead for data from another core's cache.
  const uintptr_t ahead =
      p.next == nullptr ? 24 * p.ldb * sizeof(float)
                        : reinterpret_cast<uintptr_t>(p.next) - reinterpret_cast<uintptr_t>(b);
  // The last row of the next tile.
  const uintptr_t next_rows = (2 * kRows - 1) * p.row * sizeof(float);
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
      for (int v = 0; v < kVectors; ++v) sum[r][v] = Dot::multiply(left, right[v], sum[r][v]);
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

template <class Dot, int kRows, int kVectors, bool kMasked, Store kStore>
[[gnu::noinline]] static void tile_function(const Product& p, size_t last) {
  tile<Dot, kRows, kVectors, kMasked, kStore>(p, first(last));
}

// One column of tiles: `rows` rows of C, divided into tiles of similar height, and `columns`
// columns, 1 to kTileColumns.
template <Store kStore, int kRows, class Dot = SinglePrecision>
DPT_SIMD void tile_of(const Product& p, size_t rows, size_t columns) {
  if constexpr (kRows > 1) {
    if (rows < static_cast<size_t>(kRows)) {
      tile_of<kStore, kRows - 1, Dot>(p, rows, columns);
      return;
    }
  }
  if (columns == kTileColumns) {
    tile_function<Dot, kRows, 2, false, kStore>(p, kLanes);
  } else if (columns > kLanes) {
    tile_function<Dot, kRows, 2, true, kStore>(p, columns - kLanes);
  } else {
    tile_function<Dot, kRows, 1, true, kStore>(p, columns);
  }
}

template <Store kStore, class Dot = SinglePrecision>
static void tile_column(Product p, size_t rows, size_t columns) {
  size_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (size_t left = rows; left > 0; --tiles) {
    const size_t height = (left + tiles - 1) / tiles;
    tile_of<kStore, kTileRows, Dot>(p, height, columns);
    p.a += height * p.row;
    p.c += height * p.ldc;
    left -= height;
  }
}

}  // namespace dpt::DPT_ISA
