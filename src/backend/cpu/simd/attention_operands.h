// The operands of attention's products. Only for .inc.cpp files, see isa.h.
//
// A word of an operand holds one factor, or two neighboring ones of the depth as bf16
// (bf16_words.h). Of numbers of bf16 both give the same bits.
#pragma once

#include "backend/cpu/simd/attention.h"
#include "backend/cpu/simd/bf16_words.h"
#include "backend/cpu/simd/lanes_math.h"
#include "backend/cpu/simd/rounding.h"
#include "backend/cpu/simd/tile.h"
#include "base/units.h"

namespace dpt::DPT_ISA {

// Operands: `Dot` multiplies words (tile.h), kPerWord is the number of factors of a word.
// kIsBf16: q, k, v, y and dy are numbers of bf16, and the other factors, the weights and the
// gradients of scores, are rounded to bf16. So q and k are not multiplied by the scale, but the
// scores are. Depths that end within the sequence are even, so that the number of factors in a word
// does not change which products are added.
struct AttentionOfFloats {
  using Dot = SinglePrecision;
  static constexpr size_t kPerWord = 1;
  static constexpr bool kIsBf16 = false;
};
struct AttentionOfBf16 {
  using Dot = SinglePrecision;
  static constexpr size_t kPerWord = 1;
  static constexpr bool kIsBf16 = true;
};
template <class D>
struct AttentionOfPairs {
  using Dot = D;
  static constexpr size_t kPerWord = 2;
  static constexpr bool kIsBf16 = true;
};

constexpr size_t kRowPad = kLanes;  // so that rows of scores are not a power of two apart

DPT_SIMD size_t lesser(size_t a, size_t b) { return a < b ? a : b; }
DPT_SIMD size_t up_to(size_t n, size_t multiple) { return pieces(n, multiple) * multiple; }

template <class Operands>
DPT_SIMD size_t words(size_t depth) {
  return pieces(depth, Operands::kPerWord);
}
// The largest start, and the smallest end, of a part of a depth that contains [begin, end).
template <class Operands>
DPT_SIMD size_t depth_from(size_t begin) {
  return Operands::kIsBf16 ? begin / 2 * 2 : begin;
}
template <class Operands>
DPT_SIMD size_t depth_to(size_t end, size_t most) {
  return Operands::kIsBf16 ? lesser(up_to(end, 2), most) : end;
}

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
static inline void copy_rows(const float* from, size_t stride, size_t rows, size_t columns,
                             float factor, float* to) {
  const Lanes f = all(factor);
  for (size_t r = 0; r < rows; ++r, from += stride, to += columns)
    each_vector(
        columns, [&](size_t c, auto at)
                     __attribute__((always_inline)) { at.put(to + c, at.get(from + c) * f); });
}

// to[r, w] = the word of from[r, 2 w] and from[r, 2 w + 1], or of `last` behind an odd row.
static inline void join_columns(const float* from, size_t stride, size_t rows, size_t columns,
                                uint32_t last, float* to, size_t to_row) {
  constexpr size_t kBoth = 2 * kLanes;
  for (size_t r = 0; r < rows; ++r, from += stride, to += to_row) {
    size_t c = 0;
    for (; c + kBoth <= columns; c += kBoth)
      store(to + c / 2, joined_neighbors(load(from + c), load(from + c + kLanes)));
    if (c == columns) continue;
    const size_t left = columns - c, low = lesser(left, kLanes);
    const Vector second = left > low ? load_first(from + c + kLanes, first(left - low)) : zero();
    store_first(to + c / 2, first((left + 1) / 2),
                joined_neighbors(load_first(from + c, first(low)), second));
    if (left % 2 == 0) continue;
    uint32_t word;
    __builtin_memcpy(&word, to + columns / 2, sizeof word);
    word |= last;
    __builtin_memcpy(to + columns / 2, &word, sizeof word);
  }
}

// to[w, c] = the word of from[2 w, c] and from[2 w + 1, c], or of `last` behind an odd number of
// rows.
static inline void join_rows(const float* from, size_t stride, size_t rows, size_t columns,
                             Vector last, float* to, size_t to_row) {
  for (size_t r = 0; r < rows; r += 2, from += 2 * stride, to += to_row)
    each_vector(
        columns, [&](size_t c, auto at) __attribute__((always_inline)) {
          const Vector below = r + 1 < rows ? at.get(from + stride + c).v : last;
          at.put(to + c, joined(at.get(from + c).v, below));
        });
}

// A left operand with a depth of columns: to[r, words(columns)].
template <class Operands>
DPT_SIMD void left_rows(const float* from, size_t stride, size_t rows, size_t columns, float factor,
                        float* to) {
  if constexpr (Operands::kPerWord == 1) {
    copy_rows(from, stride, rows, columns, factor, to);
  } else {
    join_columns(from, stride, rows, columns, 0, to, words<Operands>(columns));
  }
}

// A right operand with a depth of rows: to[words(rows), columns].
template <class Operands>
DPT_SIMD void right_rows(const float* from, size_t stride, size_t rows, size_t columns,
                         float factor, float* to) {
  if constexpr (Operands::kPerWord == 1) {
    copy_rows(from, stride, rows, columns, factor, to);
  } else {
    join_rows(from, stride, rows, columns, no_factor(), to, columns);
  }
}

// Panels of two vectors of rows: panels[r / kTileColumns][c, r % kTileColumns] = from[r, c]. Rows
// behind the last are 0.
static inline void transpose_words(const float* from, size_t stride, size_t rows, size_t columns,
                                   float* panels) {
  for (size_t r = 0; r < rows; r += kLanes) {
    float* const panel = panels + r / kTileColumns * kTileColumns * columns + r % kTileColumns;
    const size_t given = lesser(rows - r, kLanes);
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

// A right operand with a depth of columns, in panels. memory: rows * words(columns) floats.
template <class Operands>
DPT_SIMD void right_columns(const float* from, size_t stride, size_t rows, size_t columns,
                            float* panels, float* memory) {
  if constexpr (Operands::kPerWord == 1) {
    transpose_words(from, stride, rows, columns, panels);
  } else {
    const size_t width = words<Operands>(columns);
    join_columns(from, stride, rows, columns, 0x8000U, memory, width);
    transpose_words(memory, width, rows, width, panels);
  }
}

// exp(x) without the upper clamp. REQUIRES: x <= 1 or nan.
DPT_SIMD Lanes exp_of_low(Lanes x) {
  // Below -104 the result is 0; a nan remains a nan.
  const Reduced e = reduce_exp(max(Lanes(-104), x));
  return scale(Lanes(1) + e.expm1_r, e.n);
}

template <class Operands>
DPT_SIMD Lanes as_factor(Lanes x) {
  if constexpr (Operands::kIsBf16) {
    return ToBf16{}(x);
  } else {
    return x;
  }
}

}  // namespace dpt::DPT_ISA
