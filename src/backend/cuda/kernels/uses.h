// The gradient of an embedding. The uses of its rows are sorted by row, then by position, so that
// the uses of a row are adjacent and the order of their sum is that of the positions.
#pragma once

#include "backend/cuda/kernels/block.h"
#include "backend/cuda/kernels/number.h"
#include "backend/cuda/kernels/own_kernel.h"

namespace dpt::cuda {

// A use as a number that sorts by row, then by position. REQUIRES: fewer than 2^32 uses.
struct Use {
  DPT_HOST_DEVICE static uint64_t of(uint64_t row, uint64_t position) {
    return row << 32 | position;
  }
  DPT_HOST_DEVICE static int64_t row(uint64_t use) { return static_cast<int64_t>(use >> 32); }
  DPT_HOST_DEVICE static int64_t position(uint64_t use) {
    return static_cast<int64_t>(use & 0xffffffff);
  }
};

// The number of the sorted uses[0, count) that are less than `use`.
DPT_HOST_DEVICE inline int64_t uses_below(const uint64_t* uses, int64_t count, uint64_t use) {
  int64_t begin = 0, end = count;
  while (begin < end) {
    const int64_t middle = (begin + end) / 2;
    if (uses[middle] < use)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

// sorted[i] = the uses of `index` in runs of kRun, each sorted. Uses of rows out of range and of
// `padding` get the row `rows`. A block sorts one run by a bitonic network (Batcher 1968).
struct SortUses {
  static constexpr int kThreads = 512, kRun = 2 * kThreads, kRunBits = 10;
  static_assert(kRun == 1 << kRunBits);
  const int32_t* index;
  uint64_t* sorted;
  int64_t uses, rows, padding;
  struct Shared {
    uint64_t use[kRun];
  };
  DPT_HOST_DEVICE static int64_t runs(int64_t uses) { return (uses + kRun - 1) / kRun; }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(index, uses);
    v.writes(sorted, uses);
  }
  DPT_HOST_DEVICE uint64_t use_at(int64_t i) const {
    if (i >= uses) return ~uint64_t{0};
    const int64_t row = index[i];
    const bool counts = row >= 0 && row < rows && row != padding;
    return Use::of(static_cast<uint64_t>(counts ? row : rows), static_cast<uint64_t>(i));
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t first = block.index() * kRun;
    block.phase([&](int t, Shared& s) {
      for (const int i : {t, t + kThreads}) s.use[i] = use_at(first + i);
    });
    for (int size = 2; size <= kRun; size *= 2)
      for (int half = size / 2; half > 0; half /= 2)
        block.phase([&](int t, Shared& s) {
          const int low = t / half * 2 * half + t % half, high = low + half;
          const bool ascending = (low & size) == 0;
          const uint64_t a = s.use[low], b = s.use[high];
          if ((a > b) == ascending) s.use[low] = b, s.use[high] = a;
        });
    block.phase([&](int t, Shared& s) {
      for (const int i : {t, t + kThreads})
        if (first + i < uses) sorted[first + i] = s.use[i];
    });
  }
};

// Merges pairs of neighboring sorted runs of 2^bits uses. A use moves behind those of its own run
// and of the other run that are less; all uses are different.
struct MergeUses {
  const uint64_t* from;
  uint64_t* to;
  int64_t uses;
  int bits;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(from, uses);
    v.writes(to, uses);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t run = int64_t{1} << bits;
    const int64_t own = i >> bits << bits, pair = i >> (bits + 1) << (bits + 1);
    const int64_t other = own == pair ? own + run : pair, left = uses - other;
    const int64_t length = left < 0 ? 0 : left < run ? left : run;
    to[pair + (i - own) + uses_below(from + other, length, from[i])] = from[i];
  }
};

// begin[r] = the index of the first use of row r or of a later one. Count: the rows and 1.
struct FindUses {
  const uint64_t* sorted;
  uint32_t* begin;
  int64_t uses;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(sorted, uses);
    v.writes(begin, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t row) const {
    begin[row] =
        static_cast<uint32_t>(uses_below(sorted, uses, Use::of(static_cast<uint64_t>(row), 0)));
  }
};

// dw[r, e] = the sum of dy[i, e] over all uses i of row r, in the order of i and in double. A block
// computes one row and kThreads columns.
template <class T>
struct SumUses {
  static constexpr int kThreads = 256;
  struct Shared {};
  const T* dy;
  const uint64_t* sorted;
  const uint32_t* begin;
  float* dw;
  int64_t uses, width, rows;
  DPT_HOST_DEVICE static int64_t pieces(int64_t width) { return (width + kThreads - 1) / kThreads; }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(dy, uses * width);
    v.reads(sorted, uses);
    v.reads(begin, rows + 1);
    v.writes(dw, rows * width);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t row = block.index() / pieces(width);
    const int64_t first = block.index() % pieces(width) * kThreads;
    block.phase([&](int t, Shared&) {
      const int64_t column = first + t;
      if (column >= width) return;
      double sum = 0;
      const uint32_t end = begin[row + 1];
      for (uint32_t u = begin[row]; u < end; ++u)
        sum += static_cast<double>(number(dy[Use::position(sorted[u]) * width + column]));
      put(dw[row * width + column], sum);
    });
  }
};

using UseKernels =
    KernelList<SortUses, MergeUses, FindUses, SumUses<float>, SumUses<Bf16>, SumUses<F16>>;

}  // namespace dpt::cuda
