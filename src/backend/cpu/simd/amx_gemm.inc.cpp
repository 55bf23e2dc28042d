// Products of linear layers by tiles of bf16.
//
// Sums are computed in groups of 32 factors of the depth, each added to the sum of those before it
// (amx_tiles.h). So the order of a sum depends on the depth alone, not on the other rows and
// columns or on the blocks below.
#include "backend/cpu/simd/amx_tiles.h"
#include "backend/cpu/simd/bf16_gemm.h"
#include "backend/cpu/simd/bf16_pairs.h"

namespace dpt::DPT_ISA {
namespace {

// kSumSide columns of a panel are two tiles; panels of other instruction sets are narrower.
constexpr size_t kMostWords = 112;  // of the depth of a block
constexpr size_t kMostColumns = kPanelFloats / kMostWords / kSumSide * kSumSide;
constexpr size_t kLeftRow = kMostWords + kTileWords;  // not a power of two apart
static_assert(kMostWords % kTileWords == 0);
static_assert(kPanelFloats + kSumSide * (kLeftRow + kMostWords) <= kGemmWorkspace);

constexpr size_t whole_tiles(size_t words) { return pieces(words, kTileWords) * kTileWords; }

DPT_SIMD void clear_floats(float* p, size_t n) {
  for (size_t i = 0; i < n; ++i) p[i] = 0;
}

// A block of sums in C: rows [.., height), columns [.., width).
struct SumBlock {
  float* c;
  size_t row, height, width;
};

// Loops over the vectors of a block: f(row, column, access).
template <class F>
DPT_SIMD void each_sum(const SumBlock& b, F f) {
  for (size_t r = 0; r < b.height; ++r)
    each_vector(
        b.width, [&](size_t n, auto at) __attribute__((always_inline)) { f(r, n, at); });
}

// C = sums + bias rounded, for a block.
void put_sums(const SumBlock& b, const float* sums, const float* bias, RoundTo to) {
  with_rounding(
      to, [&](auto round) __attribute__((always_inline)) {
        each_sum(
            b, [&](size_t r, size_t n, auto at) __attribute__((always_inline)) {
              Lanes s = at.get(sums + r * kSumSide + n);
              if (bias != nullptr) s = s + at.get(bias + n);
              at.put(b.c + r * b.row + n, round(s));
            });
      });
}

// The sums of a block over the depth of the packed operands, continuing those of C if `adds`.
template <class Tiles>
void make_sums(Tiles& tiles, const SumBlock& b, bool adds, const float* left, const float* panel,
               size_t words, float* sums) {
  if (adds) {
    clear_floats(sums, kSumSide * kSumSide);
    each_sum(
        b, [&](size_t r, size_t n, auto at) __attribute__((always_inline)) {
          at.put(sums + r * kSumSide + n, at.get(b.c + r * b.row + n));
        });
    tiles.load_sums(sums);
  } else {
    tiles.clear();
  }
  for (size_t k = 0; k < words; k += kTileWords)
    tiles.multiply(left + k, kLeftRow, panel + k * kSumSide, kSumSide);
  tiles.store_sums(sums);
}

// panel[words, kSumSide] = the words of b [depth, columns], 0 behind them.
void pack_panel(const float* b, size_t stride, size_t depth, size_t columns, float* panel) {
  const size_t words = pieces(depth, 2);
  for (size_t k = 0; k < depth; k += 2, panel += kSumSide) {
    const float *const from = b + k * stride, *const next = from + stride;
    const bool pair = k + 1 < depth;
    clear_floats(panel, kSumSide);
    each_vector(
        columns, [&](size_t n, auto at) __attribute__((always_inline)) {
          at.put(panel + n, joined(at.get(from + n).v, pair ? at.get(next + n).v : zero()));
        });
  }
  clear_floats(panel, (whole_tiles(words) - words) * kSumSide);
}

// to [rows, kLeftRow] = the words of rows of a [rows, depth], 0 behind them and in further rows.
void pack_left(const float* a, size_t stride, size_t rows, size_t depth, float* to) {
  const size_t words = pieces(depth, 2), all = whole_tiles(words);
  for (size_t r = 0; r < kSumSide; ++r, to += kLeftRow) {
    if (r < rows) Bf16Pairs<Emulated>::copy_row(a + r * stride, to, depth);
    const size_t filled = r < rows ? words : 0;
    clear_floats(to + filled, all - filled);
  }
}

// panel[words, kSumSide] = the words of b [columns, depth] transposed. memory: kSumSide * kLeftRow.
void pack_panel_transposed(const float* b, size_t stride, size_t depth, size_t columns,
                           float* panel, float* memory) {
  pack_left(b, stride, columns, depth, memory);
  const float* from[kLanes];
  for (size_t n = 0; n < kSumSide; n += kLanes) {
    for (size_t i = 0; i < kLanes; ++i) from[i] = memory + (n + i) * kLeftRow;
    for (size_t k = 0; k < whole_tiles(pieces(depth, 2)); k += kLanes)
      transpose(from, k, panel + k * kSumSide + n, kSumSide);
  }
}

// The same as pack_left() for a [depth, rows]. memory: kMostWords * kSumSide floats.
void pack_left_transposed(const float* a, size_t stride, size_t rows, size_t depth, float* to,
                          float* memory) {
  pack_panel(a, stride, depth, rows, memory);
  const float* from[kLanes];
  for (size_t k = 0; k < whole_tiles(pieces(depth, 2)); k += kLanes) {
    for (size_t i = 0; i < kLanes; ++i) from[i] = memory + (k + i) * kSumSide;
    for (size_t r = 0; r < kSumSide; r += kLanes)
      transpose(from, r, to + r * kLeftRow + k, kLeftRow);
  }
}

template <class Tiles>
void tile_product(const RowProduct& p, float* workspace) {
  Tiles tiles;
  float* const left = workspace + kPanelFloats;
  alignas(64) float sums[kSumSide * kSumSide];
  const size_t rows = p.taps[0].count;
  tiles.start();
  for (size_t first = 0, columns; first < p.columns; first += columns) {
    columns = smaller(p.columns - first, kMostColumns);
    for (size_t begin = 0, depth; begin == 0 || begin < p.depth; begin += depth) {
      depth = smaller(p.depth - begin, 2 * kMostWords);
      const size_t words = whole_tiles(pieces(depth, 2));
      for (size_t n = 0; n < columns; n += kSumSide) {
        const size_t width = smaller(columns - n, kSumSide);
        if (p.b_transposed) {
          pack_panel_transposed(p.b + (first + n) * p.depth + begin, p.depth, depth, width,
                                workspace + n * words, left);
        } else {
          pack_panel(p.b + begin * p.columns + first + n, p.columns, depth, width,
                     workspace + n * words);
        }
      }
      const bool last = begin + depth == p.depth;
      for (size_t r = 0; r < rows; r += kSumSide) {
        SumBlock block{
            .c = nullptr, .row = p.columns, .height = smaller(rows - r, kSumSide), .width = 0};
        pack_left(p.a + r * p.depth + begin, p.depth, block.height, depth, left);
        for (size_t n = 0; n < columns; n += kSumSide) {
          block.c = p.c + r * p.columns + first + n;
          block.width = smaller(columns - n, kSumSide);
          make_sums(tiles, block, p.adds || begin > 0, left, workspace + n * words, words, sums);
          put_sums(block, sums, last && p.bias != nullptr ? p.bias + first + n : nullptr,
                   last ? p.to : RoundTo::f32);
        }
      }
      if (depth == 0) break;
    }
  }
  tiles.finish();
}

template <class Tiles>
void tile_sum(const RowSum& s, float* workspace) {
  Tiles tiles;
  float *const left = workspace + kPanelFloats, *const memory = left + kSumSide * kLeftRow;
  alignas(64) float sums[kSumSide * kSumSide];
  const size_t rows = s.taps[0].count;
  tiles.start();
  for (size_t first = 0, columns; first < s.columns; first += columns) {
    columns = smaller(s.columns - first, kMostColumns);
    for (size_t begin = 0, depth; begin == 0 || begin < rows; begin += depth) {
      depth = smaller(rows - begin, 2 * kMostWords);
      const size_t words = whole_tiles(pieces(depth, 2));
      for (size_t n = 0; n < columns; n += kSumSide)
        pack_panel(s.b + begin * s.columns + first + n, s.columns, depth,
                   smaller(columns - n, kSumSide), workspace + n * words);
      for (size_t i = 0; i < s.depth; i += kSumSide) {
        SumBlock block{
            .c = nullptr, .row = s.columns, .height = smaller(s.depth - i, kSumSide), .width = 0};
        pack_left_transposed(s.a + begin * s.a_row + i, s.a_row, block.height, depth, left, memory);
        for (size_t n = 0; n < columns; n += kSumSide) {
          block.c = s.c + i * s.columns + first + n;
          block.width = smaller(columns - n, kSumSide);
          make_sums(tiles, block, s.adds || begin > 0, left, workspace + n * words, words, sums);
          put_sums(block, sums, nullptr, RoundTo::f32);
        }
      }
      if (depth == 0) break;
    }
  }
  tiles.finish();
}

// One block of sums, 16 words deep.
template <class Tiles>
void multiply_tiles(const float* a, const float* b, float* sums, size_t rounds) {
  Tiles tiles;
  tiles.start();
  tiles.load_sums(sums);
  for (; rounds > 0; --rounds) tiles.multiply(a, kTileWords, b, kSumSide);
  tiles.store_sums(sums);
  tiles.finish();
}

template <class Tiles>
TileKernels kernels_of() {
  return {.products = {.row_product = tile_product<Tiles>, .row_sum = tile_sum<Tiles>},
          .multiply = multiply_tiles<Tiles>};
}

}  // namespace

void add_tiles(Bf16Kernels& kernels) {
  kernels.emulated_tiles = kernels_of<EmulatedTiles>();
#if defined(__AVX512F__)
  kernels.tiles = kernels_of<AmxTiles>();
#endif
}

}  // namespace dpt::DPT_ISA
