// PyTorch's CPU random number generator, bit for bit: the same values as torch.manual_seed(seed)
// followed by the same calls.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/mersenne_twister.h"

namespace dpt {

// Not thread-safe, since results depend on the order of calls. A copy saves the state.
//
// Matches PyTorch 2.x on x86 CPUs with AVX2 or AVX-512. (PyTorch itself gives different last bits
// with ATEN_CPU_CAPABILITY=default and on ARM.) "Words" below are 32-bit draws of the Mersenne
// Twister, which PyTorch seeds with the low 32 bits of the seed.
class Generator {
 public:
  explicit Generator(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}

  uint32_t next() { return engine_.next(); }  // 1 word
  uint64_t next64();                          // 2 words, the high half first

  // [0, 1) with 53 bits, 2 words: one element of torch.rand(dtype=float64).
  double next_double();
  // True with probability p, 2 words: tensor.bernoulli_(p). Dropout passes its keep probability, 1
  // - p.
  bool bernoulli(double p) { return next_double() < p; }
  // [low, high). 1 word, or 2 if high - low >= 2^28. REQUIRES: low < high.
  int64_t randint(int64_t low, int64_t high);
  // tensor.random_() for int64, 2 words.
  int64_t random_i64();

  // NOLINTBEGIN(readability-identifier-naming): as PyTorch names them
  // tensor.uniform_(a, b) for float32: 1 word per element. a and b are rounded to float first.
  void uniform_(std::span<float> out, double a, double b);
  // tensor.normal_(mean, sd) for contiguous float32. 16 or more elements: 1 word each, and 16 more
  // words unless the count is a multiple of 16. Fewer: 4 words per pair; the second value of an
  // incomplete pair is kept for the next call, whatever tensor that call fills.
  void normal_(std::span<float> out, double mean, double sd);
  // NOLINTEND(readability-identifier-naming)

  // torch.randperm(size): size - 1 words. REQUIRES: size <= kMaxPermutation.
  void randperm(std::span<uint32_t> out);
  void randperm(std::span<int64_t> out);
  // The complete state as text: numbers separated by spaces.
  std::string state() const;
  static std::optional<Generator> from_state(std::string_view state);  // empty: invalid text

  // PyTorch uses another algorithm for more
  static constexpr uint64_t kMaxPermutation = 0xffffffffU / 20 - 1;

 private:
  MersenneTwister engine_;
  bool has_cached_ = false;
  double cached_ = 0;  // the sine half of a Box-Muller pair
};

}  // namespace dpt
