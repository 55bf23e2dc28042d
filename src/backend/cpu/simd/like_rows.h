// Chooses which rows of the left operand pairs.h multiplies together: rows that have most of their
// zeros in common, judged by a sample of their elements. Only for .inc.cpp files.
//
// Greedy: takes the row with the fewest nonzeros, and of the other rows of its block the one with
// which it has the fewest nonzeros in union; then continues with the rest. Example: half of the
// pixels of Fashion-MNIST are 0. Two adjacent images of a batch have nonzeros in 66% of all pixels,
// two images chosen in this way in 57%.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/tile.h"

namespace dpt::DPT_ISA {

constexpr unsigned kLikeBlock = 64, kLikeBits = 128;

// The sampled elements of a row: a bit for each, set if the element is not 0.
struct Numbers {
  uint64_t bits[2];
  int count() const { return __builtin_popcountll(bits[0]) + __builtin_popcountll(bits[1]); }
  int count_with(const Numbers& other) const {
    return __builtin_popcountll(bits[0] | other.bits[0]) +
           __builtin_popcountll(bits[1] | other.bits[1]);
  }
};

// Samples whole vectors of a [depth], at equal distances. REQUIRES: depth >= kLanes.
DPT_SIMD Numbers numbers_of(const float* a, size_t depth) {
  constexpr size_t kVectors = kLikeBits / kLanes, kOfWord = kVectors / 2;
  Numbers out{};
  for (size_t i = 0; i < kVectors; ++i) {
    const size_t vector = (2 * i + 1) * (depth / kLanes) / (2 * kVectors);
    out.bits[i / kOfWord] |= uint64_t{nonzero(load(a + vector * kLanes))} << i % kOfWord * kLanes;
  }
  return out;
}

// order: a permutation of the rows 0 ... rows - 1 (at most kLikeBlock), in which 2 i and 2 i + 1
// are a pair.
DPT_SIMD void order_block(const Product& p, size_t rows, uint8_t* order) {
  if (rows > kLikeBlock) __builtin_unreachable();
  Numbers numbers[kLikeBlock];
  size_t begins[kLikeBits + 2] = {};  // where the rows with a given count begin in `left`
  for (size_t r = 0; r < rows; ++r) {
    numbers[r] = numbers_of(p.a + r * p.row, p.depth);
    ++begins[numbers[r].count() + 1];
  }
  for (size_t c = 1; c < kLikeBits + 1; ++c) begins[c] += begins[c - 1];
  uint8_t left[kLikeBlock + 1];  // the rows that are left, sorted by count
  for (size_t r = 0; r < rows; ++r) left[begins[numbers[r].count()]++] = static_cast<uint8_t>(r);
  for (size_t i = 0, count = rows; i + 1 < rows; i += 2, count -= 2) {
    const Numbers& least = numbers[left[0]];
    unsigned best = ~0U;  // nonzeros of the two rows; the lowest bits are the other row's index
    for (size_t j = 1; j < count; ++j) {
      const auto found = static_cast<unsigned>(least.count_with(numbers[left[j]]));
      const unsigned key = found * kLikeBlock + static_cast<unsigned>(j);
      best = key < best ? key : best;
    }
    const unsigned other = best % kLikeBlock;
    order[i] = left[0];
    order[i + 1] = left[other];
    for (size_t j = 1; j < other; ++j) left[j - 1] = left[j];
    for (size_t j = other + 1; j < count; ++j) left[j - 2] = left[j];
  }
  if (rows % 2 == 1) order[rows - 1] = left[0];
}

// Orders the rows 0 ... m - 1 (m <= 256) of the left operand of a product with n columns.
DPT_SIMD void order_rows(const Product& p, size_t m, size_t n, uint8_t* order) {
  for (size_t r = 0; r < m; ++r) order[r] = static_cast<uint8_t>(r);
  // A transposed operand has similar neighbors anyway, and a small product is faster than the
  // search.
  constexpr size_t kPays = 65536;
  if (p.row == 1 || p.depth < kLanes || p.depth * n < kPays) return;
  for (size_t r = 0; r < m; r += kLikeBlock) {
    const size_t rows = m - r < kLikeBlock ? m - r : kLikeBlock;
    Product block = p;
    block.a += r * p.row;
    order_block(block, rows, order + r);
    for (size_t i = 0; i < rows; ++i) order[r + i] = static_cast<uint8_t>(order[r + i] + r);
  }
}

}  // namespace dpt::DPT_ISA
