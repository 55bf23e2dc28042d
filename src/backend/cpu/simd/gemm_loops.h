// Large products. Blocks of B are packed into panels that are two vectors wide and stay in L2 while
// all rows of A are processed. A tile of C is 14 rows of a panel's width, in registers. Only for
// .inc.cpp files, see isa.h.
//
// Factors: a class that says what a word of a packed operand holds (panel_tile.h). In addition to
// `multiply` it has
//   kPerWord: factors in a word; words_of() rounds up, and the packing functions fill the last
//   word; kInPlace: whether a tile can read A where it lies; copy_row(from, to, n): to[0,
//   words_of(n)) = n neighboring factors of A; copy_columns(from, next, to, n): to[i] = the word of
//   from[i] and, with two factors in a word,
//     next[i], or nothing if next is null;
//   pack_row(from, next, columns, to): to[2 vectors] = the words of from[columns] and, with two
//     factors in a word, next[columns]; next is null behind the depth;
//   pack_transposed: fills a panel.
#pragma once

#include "backend/cpu/simd/gemm.h"
#include "backend/cpu/simd/panel_tile.h"
#include "backend/cpu/simd/stream.h"
#include "base/units.h"

namespace dpt::DPT_ISA {

constexpr size_t kPanelFloats = size_t{192} * 1024;  // of packed B: 768 KiB
constexpr size_t kDepth = 512;       // of a block of row_product, if sums are blocks
constexpr size_t kSummedRows = 256;  // rows of a block of row_sum, likewise
// So that rows of copies are not a power of two apart.
constexpr size_t kPad = kLanes;
constexpr size_t kCopiedRow = (kTileRows + kLanes - 1) / kLanes * kLanes;
static_assert(kPanelFloats + kTileRows * (kDepth + kPad) <= kGemmWorkspace &&
              kPanelFloats + kSummedRows * kCopiedRow <= kGemmWorkspace);

DPT_SIMD size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
// The size of the next piece, if `left` is divided into similar pieces of at most `most`.
constexpr size_t piece(size_t left, size_t most) {
  const size_t n = pieces(left, most);
  return (left + n - 1) / n;
}

template <class Factors>
constexpr size_t words_of(size_t depth) {
  return (depth + Factors::kPerWord - 1) / Factors::kPerWord;
}

// Prefetches the first `columns` of a row into L2: rows may be a multiple of a page apart, so that
// few of them fit into L1.
DPT_SIMD void fetch(const float* row, size_t columns) {
  const char* const begin = reinterpret_cast<const char*>(row);
  for (size_t at = 0; at < columns * sizeof(float); at += kCacheLine)
    __builtin_prefetch(begin + at, 0, 2);
}

DPT_SIMD size_t row_at(const uint32_t* table, size_t i) { return table != nullptr ? table[i] : i; }

DPT_SIMD void join(PanelTile& t, bool to_what_is_there, bool chain) {
  t.adds = to_what_is_there && !chain;
  t.continues = to_what_is_there && chain;
}

DPT_SIMD void set_masks(PanelTile& t, size_t columns) {
  t.masks[0] = first(smaller(columns, kLanes));
  t.masks[1] = first(columns > kLanes ? columns - kLanes : 0);
  t.full = columns == kTileColumns;
  t.narrow = columns <= kLanes;
}

// Fills the panels of `columns` columns of b [depth, stride], one after the other in memory.
// Several panels at a time, since long runs of a row are read faster.
template <class Factors>
static void pack(const float* b, size_t stride, const uint32_t* rows, size_t depth, size_t columns,
                 float* panels) {
  constexpr size_t kMost = 4 * kTileColumns, kRowsAhead = 8 * Factors::kPerWord;
  const size_t words = words_of<Factors>(depth);
  for (size_t n = 0, width; n < columns; n += width) {
    width = smaller(columns - n, kMost);
    float* to = panels + n * words;
    for (size_t k = 0; k < depth; k += Factors::kPerWord, to += kTileColumns) {
      const float* const from = b + row_at(rows, k) * stride + n;
      const bool pair = Factors::kPerWord > 1 && k + 1 < depth;
      const float* const next = pair ? b + row_at(rows, k + 1) * stride + n : from;
      for (size_t i = 0; i < Factors::kPerWord && k + kRowsAhead + i < depth; ++i)
        fetch(b + row_at(rows, k + kRowsAhead + i) * stride + n, width);
      for (size_t v = 0; v < width; v += kTileColumns)
        Factors::pack_row(from + v, pair ? next + v : nullptr, smaller(width - v, kTileColumns),
                          to + v * words);
    }
  }
}

// Makes this tile and the next ones prefetch `lines` cache lines, starting at t.ahead.
DPT_SIMD void fetch_lines(PanelTile& t, size_t& lines) {
  t.ahead += t.ahead_step * t.depth;
  t.ahead_step = lines > 0 ? kCacheLine : 0;
  lines -= smaller(lines, t.depth);
}

// The block [begin, begin + depth) of a tap's depth, and the columns [first, first + columns).
struct Block {
  size_t begin, depth, first, columns;
  bool adds, last;
};

template <class Factors>
static void multiply(const RowProduct& p, const RowPairs& pairs, const Block& block,
                     const float* panels, float* rows_of_a) {
  // Rows that are a multiple of a page apart would compete for few lines of L1.
  const bool copies = !Factors::kInPlace || pairs.first != nullptr || p.depth % 1024 == 0;
  const size_t words = words_of<Factors>(block.depth), copied_row = words + kPad;
  PanelTile t{};
  t.depth = words;
  t.step = 1;
  t.row = copies ? copied_row : p.depth;
  join(t, block.adds, p.chain);
  t.to = block.last ? p.to : RoundTo::f32;
  t.streams = block.depth == p.depth && pairs.count * p.columns * sizeof(float) >= kStreamedBytes &&
              p.columns % kLanes == 0 && reinterpret_cast<uintptr_t>(p.c) % sizeof(Vector) == 0;
  for (size_t r = 0, height; r < pairs.count; r += height) {
    height = piece(pairs.count - r, kTileRows);
    t.a = copies ? rows_of_a : p.a + r * p.depth + block.begin;
    t.ahead = reinterpret_cast<const char*>(copies ? rows_of_a : t.a + height * p.depth);
    t.ahead_step = 0;
    for (size_t i = 0; copies && i < height; ++i) {
      if (const size_t next = r + i + 1; next < pairs.count)
        fetch(p.a + row_at(pairs.first, next) * p.depth + block.begin, block.depth);
      Factors::copy_row(p.a + row_at(pairs.first, r + i) * p.depth + block.begin,
                        rows_of_a + i * copied_row, block.depth);
    }
    size_t lines = copies ? 0 : height * block.depth / kLanes;
    for (size_t n = 0; n < block.columns; n += kTileColumns) {
      t.panel = panels + n * words;
      for (size_t i = 0; i < height; ++i)
        t.c[i] = p.c + row_at(pairs.second, r + i) * p.columns + block.first + n;
      set_masks(t, smaller(block.columns - n, kTileColumns));
      t.bias = p.bias != nullptr && block.last ? p.bias + block.first + n : nullptr;
      fetch_lines(t, lines);
      panel_tile_of<Factors>(t, height);
    }
  }
}

template <class Factors>
static void row_product(const RowProduct& p, float* workspace) {
  // Blocks of a chain do not change its bits, so only the workspace limits them.
  const size_t most_depth = p.chain ? kDepth * Factors::kPerWord : kDepth;
  const size_t depth_of_blocks = p.depth > 0 ? piece(p.depth, most_depth) : 1;
  const size_t most_columns =
      kPanelFloats / words_of<Factors>(depth_of_blocks) / kTileColumns * kTileColumns;
  Block block{};
  for (block.first = 0; block.first < p.columns; block.first += block.columns) {
    block.columns = smaller(p.columns - block.first, most_columns);
    for (size_t tap = 0; tap < p.tap_count; ++tap) {
      const float* const b = p.b + tap * p.depth * p.columns;
      for (block.begin = 0; block.begin < p.depth; block.begin += block.depth) {
        block.depth = smaller(p.depth - block.begin, depth_of_blocks);
        block.adds = p.adds || block.begin > 0;
        block.last = block.begin + block.depth == p.depth;
        if (!p.b_transposed)
          pack<Factors>(b + block.begin * p.columns + block.first, p.columns, nullptr, block.depth,
                        block.columns, workspace);
        for (size_t n = 0; p.b_transposed && n < block.columns; n += kTileColumns)
          Factors::pack_transposed(b + (block.first + n) * p.depth + block.begin, p.depth,
                                   block.depth, smaller(block.columns - n, kTileColumns),
                                   workspace + n * words_of<Factors>(block.depth));
        multiply<Factors>(p, p.taps[tap], block, workspace, workspace + kPanelFloats);
      }
    }
  }
  end_streams();
}

// Adds the products of rows [begin, begin + rows) of the pairs for the columns [first, first +
// columns).
template <class Factors>
static void add_rows(const RowSum& s, const RowPairs& pairs, float* c, size_t begin, size_t rows,
                     size_t first, size_t columns, float* workspace) {
  const uint32_t* const from = pairs.first != nullptr ? pairs.first + begin : nullptr;
  const uint32_t* const to = pairs.second != nullptr ? pairs.second + begin : nullptr;
  const float* const a = s.a + (from != nullptr ? 0 : begin * s.a_row);
  const float* const b = s.b + (to != nullptr ? 0 : begin * s.columns) + first;
  const size_t words = words_of<Factors>(rows);
  pack<Factors>(b, s.columns, to, rows, columns, workspace);
  // Prefetch the operands of the next rows, those of b first.
  const size_t after = columns == s.columns ? smaller(pairs.count - begin - rows, rows) : 0;
  size_t lines_of_b = to == nullptr ? after * s.columns / kLanes : 0;
  size_t lines_of_a = from == nullptr && s.a_row == s.depth ? after * s.depth / kLanes : 0;
  PanelTile t{};
  t.ahead = reinterpret_cast<const char*>(b + rows * s.columns);
  t.depth = words;
  t.row = 1;
  // Rows of a are only copied if few of them would fit into L1.
  const bool copies = !Factors::kInPlace || from != nullptr || s.a_row > 256;
  t.step = copies ? kCopiedRow : s.a_row;
  join(t, s.adds || begin > 0, s.chain);
  float* const columns_of_a = workspace + kPanelFloats;
  for (size_t i = 0, height; i < s.depth; i += height) {
    height = piece(s.depth - i, kTileRows);
    for (size_t k = 0, to_word = 0; copies && k < rows; k += Factors::kPerWord, ++to_word) {
      const bool pair = Factors::kPerWord > 1 && k + 1 < rows;
      Factors::copy_columns(a + row_at(from, k) * s.a_row + i,
                            pair ? a + row_at(from, k + 1) * s.a_row + i : nullptr,
                            columns_of_a + to_word * kCopiedRow, height);
    }
    t.a = copies ? columns_of_a : a + i;
    for (size_t n = 0; n < columns; n += kTileColumns) {
      t.panel = workspace + n * words;
      for (size_t h = 0; h < height; ++h) t.c[h] = c + (i + h) * s.columns + first + n;
      set_masks(t, smaller(columns - n, kTileColumns));
      if (lines_of_b == 0 && lines_of_a > 0) {
        t.ahead = reinterpret_cast<const char*>(a + rows * s.a_row);
        t.ahead_step = 0;
        lines_of_b = lines_of_a;
        lines_of_a = 0;
      }
      fetch_lines(t, lines_of_b);
      panel_tile_of<Factors>(t, height);
    }
  }
}

DPT_SIMD void clear(float* c, size_t rows, size_t stride, size_t columns) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t n = 0; n < columns; ++n) c[r * stride + n] = 0;
}

template <class Factors>
static void row_sum(const RowSum& s, float* workspace) {
  constexpr size_t kLeastRows = 128;
  constexpr size_t most_columns = kPanelFloats / kLeastRows / kTileColumns * kTileColumns;
  for (size_t first = 0, columns; first < s.columns; first += columns) {
    columns = smaller(s.columns - first, most_columns);
    const size_t fit = kPanelFloats / (pieces(columns, kTileColumns) * kTileColumns);
    const size_t most_words = smaller(fit, kSummedRows);
    const size_t most_rows = s.chain ? most_words * Factors::kPerWord : most_words;
    for (size_t tap = 0; tap < s.tap_count; ++tap) {
      const RowPairs& pairs = s.taps[tap];
      float* const c = s.c + tap * s.depth * s.columns;
      if (pairs.count == 0 && !s.adds) clear(c + first, s.depth, s.columns, columns);
      for (size_t r = 0, rows; r < pairs.count; r += rows) {
        rows = piece(pairs.count - r, most_rows);
        add_rows<Factors>(s, pairs, c, r, rows, first, columns, workspace);
      }
    }
  }
}

}  // namespace dpt::DPT_ISA
