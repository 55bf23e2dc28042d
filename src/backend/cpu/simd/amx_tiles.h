// Tiles of AMX-BF16, and the same emulated. Only for .inc.cpp files, see isa.h.
//
// A tile of a left operand has 16 rows of 16 words, one of a right operand 16 words of the depth
// for 16 columns, and one of sums 16 x 16 floats. A word holds two neighboring factors
// (bf16_words.h). For each sum S, TDPBF16PS computes the chain of fma of the 16 products of the
// lower halves of words, in order and from 0, that of the upper halves, the sum of both, and its
// sum with S. Each is rounded to nearest even, and subnormal numbers count as 0. This is Intel's
// definition (Software Developer's Manual, TDPBF16PS); bf16_products.h checks it.
#pragma once

#include "backend/cpu/simd/bf16_words.h"

namespace dpt::DPT_ISA {

constexpr size_t kTileWords = 16;           // words of the depth of a tile
constexpr size_t kTileSide = 16;            // rows, or columns, of a tile
constexpr size_t kSumSide = 2 * kTileSide;  // two by two tiles of sums are computed at a time

// Classes of tiles have the functions of EmulatedTiles. Between start() and finish(), one object
// per thread may be used.
class EmulatedTiles {
 public:
  void start() {}
  void finish() {}
  // sums [kSumSide, kSumSide]
  [[gnu::always_inline]] void clear() {
    for (auto& row : sums_)
      for (float& s : row) s = 0;
  }
  [[gnu::always_inline]] void load_sums(const float* from) {
    __builtin_memcpy(sums_, from, sizeof sums_);
  }
  [[gnu::always_inline]] void store_sums(float* to) const {
    __builtin_memcpy(to, sums_, sizeof sums_);
  }
  // Adds the products of a [kSumSide, kTileWords] and b [kTileWords, kSumSide]. Rows of a and b are
  // a_row and b_row words apart.
  void multiply(const float* a, size_t a_row, const float* b, size_t b_row) {
    for (size_t r = 0; r < kSumSide; ++r)
      for (size_t n = 0; n < kSumSide; n += kLanes) {
        Vector low = zero(), high = zero();
        for (size_t k = 0; k < kTileWords; ++k) {
          const Vector left = all(a[r * a_row + k]), right = load(b + k * b_row + n);
          low = fma((Vector)((Words)left << 16), (Vector)((Words)right << 16), low);
          high = fma((Vector)upper(left), (Vector)upper(right), high);
        }
        store(&sums_[r][n], add(load(&sums_[r][n]), add(low, high)));
      }
  }

 private:
  float sums_[kSumSide][kSumSide];
};

#if defined(__AVX512F__)
// In assembler, since the rest of this library must not use AMX. REQUIRES: AMX-BF16, and the
// system's permission to use tiles.
class AmxTiles {
 public:
  void start() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } config;
    static_assert(sizeof config == 64);
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  void finish() { __asm__ volatile("tilerelease" ::: "memory"); }
  void clear() {
    __asm__ volatile("tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\ttilezero %%tmm3" ::
                         : "memory");
  }
  void load_sums(const float* from) {
    __asm__ volatile(
        "tileloadd (%0, %4, 1), %%tmm0\n\ttileloadd (%1, %4, 1), %%tmm1\n\t"
        "tileloadd (%2, %4, 1), %%tmm2\n\ttileloadd (%3, %4, 1), %%tmm3" ::"r"(from),
        "r"(from + kTileSide), "r"(from + kTileSide * kSumSide),
        "r"(from + kTileSide * kSumSide + kTileSide), "r"(kSumSide * sizeof(float))
        : "memory");
  }
  void store_sums(float* to) const {
    __asm__ volatile(
        "tilestored %%tmm0, (%0, %4, 1)\n\ttilestored %%tmm1, (%1, %4, 1)\n\t"
        "tilestored %%tmm2, (%2, %4, 1)\n\ttilestored %%tmm3, (%3, %4, 1)" ::"r"(to),
        "r"(to + kTileSide), "r"(to + kTileSide * kSumSide),
        "r"(to + kTileSide * kSumSide + kTileSide), "r"(kSumSide * sizeof(float))
        : "memory");
  }
  void multiply(const float* a, size_t a_row, const float* b, size_t b_row) {
    __asm__ volatile(
        "tileloadd (%0, %4, 1), %%tmm4\n\t"
        "tileloadd (%2, %5, 1), %%tmm6\n\t"
        "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\t"
        "tileloadd (%3, %5, 1), %%tmm7\n\t"
        "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"
        "tileloadd (%1, %4, 1), %%tmm5\n\t"
        "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\t"
        "tdpbf16ps %%tmm7, %%tmm5, %%tmm3" ::"r"(a),
        "r"(a + kTileSide * a_row), "r"(b), "r"(b + kTileSide), "r"(a_row * sizeof(float)),
        "r"(b_row * sizeof(float))
        : "memory");
  }
};
#endif

}  // namespace dpt::DPT_ISA
