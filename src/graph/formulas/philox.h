// Philox4x32-10, a counter-based random generator: Salmon et al., "Parallel Random Numbers: As Easy
// as 1, 2, 3", 2011. A counter and a key give the same four words on every device, in any order.
//
// Note [dropout's words]: element e of a sample uses word e / 16 % 4 of block e / 64 * 16 + e % 16.
// So 16 consecutive elements use the same word of 16 consecutive blocks, and a vector of blocks
// gives vectors of elements without a transposition.
#pragma once

#include <stdint.h>

#include "graph/formulas/formulas.h"

namespace dpt::philox {

struct Words {
  uint32_t w[4];
};
struct Key {
  uint32_t k[2];
};

DPT_FORMULA Words block(Words counter, Key key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter.w[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter.w[2];
    counter = {{static_cast<uint32_t>(b >> 32) ^ counter.w[1] ^ key.k[0], static_cast<uint32_t>(b),
                static_cast<uint32_t>(a >> 32) ^ counter.w[3] ^ key.k[1],
                static_cast<uint32_t>(a)}};
    key.k[0] += 0x9E3779B9;
    key.k[1] += 0xBB67AE85;
  }
  return counter;
}

// The key of a layer: SplitMix64's finalizer of the layer's number, xor the seed.
DPT_FORMULA Key layer_key(uint64_t seed, uint64_t layer) {
  uint64_t z = layer + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z = (z ^ (z >> 31)) ^ seed;
  return {{static_cast<uint32_t>(z), static_cast<uint32_t>(z >> 32)}};
}

// The counter of a block of a sample. Samples are numbered within the global batch.
DPT_FORMULA Words sample_counter(uint64_t step, uint64_t sample, uint32_t block_number) {
  const uint64_t high = (step >> 32) ^ ((sample >> 32) << 16);
  return {{block_number, static_cast<uint32_t>(sample), static_cast<uint32_t>(step),
           static_cast<uint32_t>(high)}};
}

// The word of one element, for reference implementations.
DPT_FORMULA uint32_t element_word(Key key, uint64_t step, uint64_t sample, uint64_t element) {
  const uint32_t number = static_cast<uint32_t>(element / 64 * 16 + element % 16);
  return block(sample_counter(step, sample, number), key).w[element / 16 % 4];
}

// The threshold for drop probability p: an element is kept if its word is below it. 0 keeps none,
// 2^32 all.
DPT_FORMULA uint64_t keep_below(double p) {
  // NOLINTNEXTLINE(bugprone-incorrect-roundings): not negative, and below 2^53
  return static_cast<uint64_t>((1 - p) * 4294967296.0 + 0.5);
}

}  // namespace dpt::philox
