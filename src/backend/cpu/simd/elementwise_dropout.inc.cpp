// Dropout with Philox4x32-10 on vectors of blocks (graph/formulas/philox.h), and with given masks.
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/lanes.h"
#include "graph/formulas/philox.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace dpt::DPT_ISA {
namespace {

// Vectors of 64-bit lanes, each with a Philox word in its low half: the product of two words needs
// 64 bits, and there are instructions for it.
typedef uint64_t Wide __attribute__((vector_size(sizeof(Vector))));
constexpr size_t kWide = kLanes / 2;  // Philox blocks per vector

DPT_SIMD Wide product(Wide a, uint32_t b) {  // of the low halves
#if defined(__AVX512F__)
  return (Wide)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi64(b));
#elif defined(__AVX2__)
  return (Wide)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi64x(b));
#elif defined(__SSE2__)
  return (Wide)_mm_mul_epu32((__m128i)a, _mm_set1_epi64x(b));
#else
  return (a & 0xffffffff) * uint64_t{b};
#endif
}

struct WideBlocks {
  Wide w[4];
};

DPT_SIMD WideBlocks philox_blocks(WideBlocks c, uint32_t k0, uint32_t k1) {
  DPT_UNROLL
  for (int round = 0; round < 10; ++round) {
    const Wide a = product(c.w[0], 0xD2511F53), b = product(c.w[2], 0xCD9E8D57);
    c.w[0] = (b >> 32) ^ c.w[1] ^ uint64_t { k0 };
    c.w[1] = b;  // the upper halves are not used
    c.w[2] = (a >> 32) ^ c.w[3] ^ uint64_t { k1 };
    c.w[3] = a;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// out[w][j] = word w of block first_block + j, for 16 blocks of one sample.
DPT_SIMD void words_of_16_blocks(const DropoutArgs& args, uint64_t sample, uint32_t first_block,
                                 uint32_t out[4][16]) {
  const philox::Words base = philox::sample_counter(args.step, sample, 0);
  for (size_t at = 0; at < 16; at += kLanes) {
    Wide even{};
    for (size_t j = 0; j < kWide; ++j) even[j] = first_block + at + 2 * j;
    const Wide none{};
    const WideBlocks c{{even, none + base.w[1], none + base.w[2], none + base.w[3]}};
    const WideBlocks d{{even + 1, c.w[1], c.w[2], c.w[3]}};
    const WideBlocks e = philox_blocks(c, args.key[0], args.key[1]);
    const WideBlocks o = philox_blocks(d, args.key[0], args.key[1]);
    for (int w = 0; w < 4; ++w) {
      const Wide both = (e.w[w] & 0xffffffff) | (o.w[w] << 32);
      __builtin_memcpy(&out[w][at], &both, sizeof both);
    }
  }
}

void dropout(const float* x, float* y, size_t rows, size_t width, const DropoutArgs& args) {
  const Lanes scale = all(args.scale);
  const Words last = Words{} + static_cast<uint32_t>(args.keep_below - 1);
  const uint32_t any = args.keep_below == 0 ? 0 : ~uint32_t{0};  // p = 1 keeps nothing
  for (size_t r = 0; r < rows; ++r)
    for (size_t first = 0; first < width; first += 64) {
      uint32_t words[4][16];
      words_of_16_blocks(args, args.sample + r, static_cast<uint32_t>(first / 4), words);
      const size_t count = width - first < 64 ? width - first : 64;
      const float* from = x + r * width + first;
      float* to = y + r * width + first;
      each_vector(
          count, [&](size_t i, auto at) __attribute__((always_inline)) {
            Words w;
            __builtin_memcpy(&w, &words[0][0] + i, sizeof w);
            const Words kept = (Words)(w <= last) & any;
            at.put(to + i, (Vector)(kept & (Words)(at.get(from + i) * scale).v));
          });
    }
}

void dropout_channels(const float* x, float* y, size_t rows, size_t channels, size_t together,
                      const DropoutArgs& args) {
  for (size_t r = 0; r < rows; ++r)
    for (size_t first = 0; first < channels; first += 64) {
      uint32_t words[4][16];
      words_of_16_blocks(args, args.sample + r, static_cast<uint32_t>(first / 4), words);
      for (size_t c = 0; c < 64 && first + c < channels; ++c, x += together, y += together) {
        const bool kept = words[c / 16][c % 16] < args.keep_below;
        each_vector(
            together, [&](size_t i, auto at) __attribute__((always_inline)) {
              at.put(y + i, kept ? at.get(x + i) * Lanes(all(args.scale)) : Lanes(zero()));
            });
      }
    }
}

void masked(const float* x, const float* mask, float* y, size_t n, float scale) {
  const Lanes s = all(scale);
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        at.put(y + i, at.get(x + i) * (at.get(mask + i) * s));
      });
}

void masked_u8(const float* x, const uint8_t* mask, float* y, size_t n, float scale) {
  for (size_t i = 0; i < n; ++i) y[i] = x[i] * (static_cast<float>(mask[i]) * scale);
}

}  // namespace

void add_dropout(ElementwiseKernels& kernels) {
  kernels.dropout = dropout;
  kernels.dropout_channels = dropout_channels;
  kernels.masked = masked;
  kernels.masked_u8 = masked_u8;
}

}  // namespace dpt::DPT_ISA
