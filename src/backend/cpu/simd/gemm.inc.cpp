// Large products. Blocks of B are packed into panels that are two vectors wide and stay in L2 while
// all rows of A are processed. A tile of C is 14 rows of a panel's width, in registers.
#include "backend/cpu/simd/gemm.h"

#include "backend/cpu/simd/rounding.h"
#include "backend/cpu/simd/stream.h"
#include "backend/cpu/simd/tile.h"

namespace dpt::DPT_ISA {
namespace {

constexpr size_t kPanelFloats = size_t{192} * 1024;  // of packed B: 768 KiB
constexpr size_t kDepth = 512;                       // of a block of row_product
constexpr size_t kSummedRows = 256;                  // rows of a block of row_sum
// So that rows of copies are not a power of two apart.
constexpr size_t kPad = kLanes;
constexpr size_t kCopiedRow = (kTileRows + kLanes - 1) / kLanes * kLanes;
static_assert(kPanelFloats + kTileRows * (kDepth + kPad) <= kGemmWorkspace &&
              kPanelFloats + kSummedRows * kCopiedRow <= kGemmWorkspace);

// One tile. Element (r, k) of A is a[r * row + k * step].
struct Tile {
  size_t depth;
  const float* a;
  size_t row, step;
  const float* panel;  // [depth, 2 vectors]
  float* c[kTileRows];
  Mask masks[2];
  bool full;  // both vectors are complete
  // Non-temporal stores: rows of C are complete and aligned, and C is larger than the caches.
  bool streams;
  bool adds;          // adds the result to C
  bool continues;     // continues the chains in C
  const float* bias;  // [2 vectors] added last; may be null
  RoundTo to;         // rounding of the result
  const char* ahead;  // prefetched meanwhile: one line per k
  size_t ahead_step;
};

#if defined(__AVX512F__)
DPT_SIMD void store_past_caches(float* p, Vector v) { _mm512_stream_ps(p, v); }
#elif defined(__AVX2__)
DPT_SIMD void store_past_caches(float* p, Vector v) { _mm256_stream_ps(p, v); }
#else
DPT_SIMD void store_past_caches(float* p, Vector v) { store(p, v); }
#endif

template <int kRows, void (*kPut)(float*, Vector)>
DPT_SIMD void put(float* const* c, const Vector (*sum)[2]) {
  DPT_UNROLL
  for (int r = 0; r < kRows; ++r) {
    kPut(c[r], sum[r][0]);
    kPut(c[r] + kLanes, sum[r][1]);
  }
}

template <int kRows>
[[gnu::noinline]] void panel_tile(const Tile& t) {
  Vector sum[kRows][2];
  DPT_UNROLL
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = zero();
  if (t.continues) {
    DPT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      DPT_UNROLL
      for (int v = 0; v < 2; ++v) sum[r][v] = load_first(t.c[r] + v * kLanes, t.masks[v]);
    }
  }
  // A pointer to every third row: the next two rows are reached with an index times 1 and 2.
  constexpr int kPointers = (kRows + 2) / 3;
  const char* a[kPointers];
  const size_t row = t.row * sizeof(float), step = t.step * sizeof(float);
  DPT_UNROLL
  for (int i = 0; i < kPointers; ++i) {
    a[i] = reinterpret_cast<const char*>(t.a) + 3 * i * row;
    __asm__("" : "+r"(a[i]));
  }
  const float* b = t.panel;
  const char* ahead = t.ahead;
  const size_t ahead_step = t.ahead_step;
  for (size_t k = t.depth; k > 0; --k) {
    const Vector right0 = load(b), right1 = load(b + kLanes);
    __builtin_prefetch(b + 16 * kTileColumns);
    __builtin_prefetch(b + 16 * kTileColumns + kLanes);
    __builtin_prefetch(ahead, 0, 2);
    DPT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Vector left = all(*reinterpret_cast<const float*>(a[r / 3] + r % 3 * row));
      sum[r][0] = fma(left, right0, sum[r][0]);
      sum[r][1] = fma(left, right1, sum[r][1]);
    }
    DPT_UNROLL
    for (int i = 0; i < kPointers; ++i) {
      a[i] += step;
      __asm__("" : "+r"(a[i]));
    }
    b += kTileColumns;
    ahead += ahead_step;
  }
  if (t.bias != nullptr) {
    DPT_UNROLL
    for (int v = 0; v < 2; ++v) {
      const Vector bias = load_first(t.bias + v * kLanes, t.masks[v]);
      DPT_UNROLL
      for (int r = 0; r < kRows; ++r) sum[r][v] = add(sum[r][v], bias);
    }
  }
  if (t.to != RoundTo::f32) {
    if (t.adds) {
      DPT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        DPT_UNROLL
        for (int v = 0; v < 2; ++v)
          sum[r][v] = add(load_first(t.c[r] + v * kLanes, t.masks[v]), sum[r][v]);
      }
    }
    with_rounding(
        t.to, [&](auto round) __attribute__((always_inline)) {
          DPT_UNROLL
          for (int r = 0; r < kRows; ++r) {
            DPT_UNROLL
            for (int v = 0; v < 2; ++v) sum[r][v] = round(sum[r][v]).v;
          }
        });
  }
  const bool adds = t.adds && t.to == RoundTo::f32;
  if (t.full && !adds) {
    if (t.streams) {
      put<kRows, store_past_caches>(t.c, sum);
    } else {
      put<kRows, store>(t.c, sum);
    }
    return;
  }
  DPT_UNROLL
  for (int v = 0; v < 2; ++v) {
    const Mask mask = t.masks[v];
    if (adds) {
      DPT_UNROLL
      for (int r = 0; r < kRows; ++r)
        sum[r][v] = add(load_first(t.c[r] + v * kLanes, mask), sum[r][v]);
    }
    DPT_UNROLL
    for (int r = 0; r < kRows; ++r) store_first(t.c[r] + v * kLanes, mask, sum[r][v]);
  }
}

template <int kRows = kTileRows>
DPT_SIMD void panel_tile_of(const Tile& t, size_t rows) {
  if constexpr (kRows > 1) {
    if (rows < static_cast<size_t>(kRows)) {
      panel_tile_of<kRows - 1>(t, rows);
      return;
    }
  }
  panel_tile<kRows>(t);
}

DPT_SIMD size_t smaller(size_t a, size_t b) { return a < b ? a : b; }
// The size of the next piece, if `left` is divided into similar pieces of at most `most`.
constexpr size_t piece(size_t left, size_t most) {
  const size_t n = pieces(left, most);
  return (left + n - 1) / n;
}

DPT_SIMD size_t row_at(const uint32_t* table, size_t i) { return table != nullptr ? table[i] : i; }

DPT_SIMD void copy(const float* from, float* to, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(to + i, load(from + i));
  if (i < n) {
    const Mask last = first(n - i);
    store_first(to + i, last, load_first(from + i, last));
  }
}

// panel[k, 0 ... 2 vectors) = b[row k, 0 ... columns), followed by zeros. rows: null: row k is k.
void pack(const float* b, size_t stride, const uint32_t* rows, size_t depth, size_t columns,
          float* panel) {
  const size_t high_columns = columns > kLanes ? columns - kLanes : 0;
  const Mask low = first(smaller(columns, kLanes)), high = first(high_columns);
  for (size_t k = 0; k < depth; ++k, panel += kTileColumns) {
    const float* const from = b + row_at(rows, k) * stride;
    store(panel, load_first(from, low));
    store(panel + kLanes, high_columns > 0 ? load_first(from + kLanes, high) : zero());
  }
}

// panel[k, n] = b[n, k].
void pack_transposed(const float* b, size_t stride, size_t depth, size_t columns, float* panel) {
  for (size_t n = 0; n < kTileColumns; n += kLanes) {
    const size_t given = columns > n ? smaller(columns - n, kLanes) : 0;
    size_t k = 0;
    if (given == kLanes) {
      const float* rows[kLanes];
      for (size_t i = 0; i < kLanes; ++i) rows[i] = b + (n + i) * stride;
      for (; k + kLanes <= depth; k += kLanes)
        transpose(rows, k, panel + k * kTileColumns + n, kTileColumns);
    }
    for (; k < depth; ++k)
      for (size_t i = 0; i < kLanes; ++i)
        panel[k * kTileColumns + n + i] = i < given ? b[(n + i) * stride + k] : 0;
  }
}

void join(Tile& t, bool to_what_is_there, bool chain) {
  t.adds = to_what_is_there && !chain;
  t.continues = to_what_is_there && chain;
}

void set_masks(Tile& t, size_t columns) {
  t.masks[0] = first(smaller(columns, kLanes));
  t.masks[1] = first(columns > kLanes ? columns - kLanes : 0);
  t.full = columns == kTileColumns;
}

// Makes this tile and the next ones prefetch `lines` cache lines, starting at t.ahead.
DPT_SIMD void fetch_lines(Tile& t, size_t& lines) {
  t.ahead += t.ahead_step * t.depth;
  t.ahead_step = lines > 0 ? 64 : 0;
  lines -= smaller(lines, t.depth);
}

// The block [begin, begin + depth) of a tap's depth, and the columns [first, first + columns).
struct Block {
  size_t begin, depth, first, columns;
  bool adds, last;
};

void multiply(const RowProduct& p, const RowPairs& pairs, const Block& block, const float* panels,
              float* rows_of_a) {
  // Rows that are a multiple of a page apart would compete for few lines of L1.
  const bool copies = pairs.first != nullptr || p.depth % 1024 == 0;
  const size_t copied_row = block.depth + kPad;
  Tile t{};
  t.depth = block.depth;
  t.step = 1;
  t.row = copies ? copied_row : p.depth;
  join(t, block.adds, p.chain);
  t.to = block.last ? p.to : RoundTo::f32;
  t.streams = p.depth <= kDepth && pairs.count * p.columns * sizeof(float) >= kStreamedBytes &&
              p.columns % kLanes == 0 && reinterpret_cast<uintptr_t>(p.c) % sizeof(Vector) == 0;
  for (size_t r = 0, height; r < pairs.count; r += height) {
    height = piece(pairs.count - r, kTileRows);
    t.a = copies ? rows_of_a : p.a + r * p.depth + block.begin;
    t.ahead = reinterpret_cast<const char*>(t.a + (copies ? 0 : height * p.depth));
    t.ahead_step = 0;
    for (size_t i = 0; copies && i < height; ++i)
      copy(p.a + row_at(pairs.first, r + i) * p.depth + block.begin, rows_of_a + i * copied_row,
           block.depth);
    size_t lines = copies ? 0 : height * block.depth / kLanes;
    for (size_t n = 0; n < block.columns; n += kTileColumns) {
      t.panel = panels + n * block.depth;
      for (size_t i = 0; i < height; ++i)
        t.c[i] = p.c + row_at(pairs.second, r + i) * p.columns + block.first + n;
      set_masks(t, smaller(block.columns - n, kTileColumns));
      t.bias = p.bias != nullptr && block.last ? p.bias + block.first + n : nullptr;
      fetch_lines(t, lines);
      panel_tile_of(t, height);
    }
  }
}

void row_product(const RowProduct& p, float* workspace) {
  const size_t depth_of_blocks = p.depth > 0 ? piece(p.depth, kDepth) : 1;
  const size_t most_columns = kPanelFloats / depth_of_blocks / kTileColumns * kTileColumns;
  Block block{};
  for (block.first = 0; block.first < p.columns; block.first += block.columns) {
    block.columns = smaller(p.columns - block.first, most_columns);
    for (size_t tap = 0; tap < p.tap_count; ++tap) {
      const float* const b = p.b + tap * p.depth * p.columns;
      for (block.begin = 0; block.begin < p.depth; block.begin += block.depth) {
        block.depth = smaller(p.depth - block.begin, depth_of_blocks);
        block.adds = p.adds || block.begin > 0;
        block.last = block.begin + block.depth == p.depth;
        for (size_t n = 0; n < block.columns; n += kTileColumns) {
          const size_t columns = smaller(block.columns - n, kTileColumns);
          float* const panel = workspace + n * block.depth;
          if (p.b_transposed) {
            pack_transposed(b + (block.first + n) * p.depth + block.begin, p.depth, block.depth,
                            columns, panel);
          } else {
            pack(b + block.begin * p.columns + block.first + n, p.columns, nullptr, block.depth,
                 columns, panel);
          }
        }
        multiply(p, p.taps[tap], block, workspace, workspace + kPanelFloats);
      }
    }
  }
  end_streams();
}

// Adds the products of rows [begin, begin + rows) of the pairs for the columns [first, first +
// columns).
void add_rows(const RowSum& s, const RowPairs& pairs, float* c, size_t begin, size_t rows,
              size_t first, size_t columns, float* workspace) {
  const uint32_t* const from = pairs.first != nullptr ? pairs.first + begin : nullptr;
  const uint32_t* const to = pairs.second != nullptr ? pairs.second + begin : nullptr;
  const float* const a = s.a + (from != nullptr ? 0 : begin * s.a_row);
  const float* const b = s.b + (to != nullptr ? 0 : begin * s.columns) + first;
  for (size_t n = 0; n < columns; n += kTileColumns)
    pack(b + n, s.columns, to, rows, smaller(columns - n, kTileColumns), workspace + n * rows);
  // Prefetch the operands of the next rows, those of b first.
  const size_t after = columns == s.columns ? smaller(pairs.count - begin - rows, rows) : 0;
  size_t lines_of_b = to == nullptr ? after * s.columns / kLanes : 0;
  size_t lines_of_a = from == nullptr && s.a_row == s.depth ? after * s.depth / kLanes : 0;
  Tile t{};
  t.ahead = reinterpret_cast<const char*>(b + rows * s.columns);
  t.depth = rows;
  t.row = 1;
  // Rows of a are only copied if few of them would fit into L1.
  const bool copies = from != nullptr || s.a_row > 256;
  t.step = copies ? kCopiedRow : s.a_row;
  join(t, s.adds || begin > 0, s.chain);
  float* const columns_of_a = workspace + kPanelFloats;
  for (size_t i = 0, height; i < s.depth; i += height) {
    height = piece(s.depth - i, kTileRows);
    for (size_t k = 0; copies && k < rows; ++k)
      copy(a + row_at(from, k) * s.a_row + i, columns_of_a + k * kCopiedRow, height);
    t.a = copies ? columns_of_a : a + i;
    for (size_t n = 0; n < columns; n += kTileColumns) {
      t.panel = workspace + n * rows;
      for (size_t h = 0; h < height; ++h) t.c[h] = c + (i + h) * s.columns + first + n;
      set_masks(t, smaller(columns - n, kTileColumns));
      if (lines_of_b == 0 && lines_of_a > 0) {
        t.ahead = reinterpret_cast<const char*>(a + rows * s.a_row);
        t.ahead_step = 0;
        lines_of_b = lines_of_a;
        lines_of_a = 0;
      }
      fetch_lines(t, lines_of_b);
      panel_tile_of(t, height);
    }
  }
}

void clear(float* c, size_t rows, size_t stride, size_t columns) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t n = 0; n < columns; ++n) c[r * stride + n] = 0;
}

void row_sum(const RowSum& s, float* workspace) {
  constexpr size_t kLeastRows = 128;
  constexpr size_t most_columns = kPanelFloats / kLeastRows / kTileColumns * kTileColumns;
  for (size_t first = 0, columns; first < s.columns; first += columns) {
    columns = smaller(s.columns - first, most_columns);
    const size_t fit = kPanelFloats / (pieces(columns, kTileColumns) * kTileColumns);
    const size_t most_rows = smaller(fit, kSummedRows);
    for (size_t tap = 0; tap < s.tap_count; ++tap) {
      const RowPairs& pairs = s.taps[tap];
      float* const c = s.c + tap * s.depth * s.columns;
      if (pairs.count == 0 && !s.adds) clear(c + first, s.depth, s.columns, columns);
      for (size_t r = 0, rows; r < pairs.count; r += rows) {
        rows = piece(pairs.count - r, most_rows);
        add_rows(s, pairs, c, r, rows, first, columns, workspace);
      }
    }
  }
}

}  // namespace

void add_gemm(GemmKernels& kernels) {
  kernels.row_product = row_product;
  kernels.row_sum = row_sum;
}

}  // namespace dpt::DPT_ISA
