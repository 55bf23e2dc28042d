// torch's CPU random numbers, bit for bit: what torch.manual_seed(seed) and then the same calls
// give.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace dpt {

// Not thread-safe: the order of the calls is the result. Copying one saves its state.
//
// Matches PyTorch 2.x on x86 CPUs with AVX2 or AVX-512 (torch itself gives other last bits with
// ATEN_CPU_CAPABILITY=default and on ARM). "Words" are 32-bit draws of the Mersenne Twister, of
// which torch keeps only the low 32 bits of the seed.
class Generator {
 public:
  explicit Generator(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}

  uint32_t next() { return static_cast<uint32_t>(engine_()); }  // 1 word
  uint64_t next64();                                            // 2 words, the high half first

  // [0, 1) with 53 bits, 2 words: an element of torch.rand(dtype=float64).
  double next_double();
  // True with probability p, 2 words: tensor.bernoulli_(p), and dropout with p = 1 - its own.
  bool bernoulli(double p) { return next_double() < p; }
  // [low, high), 1 word, or 2 where high - low >= 2^28. REQUIRES: low < high.
  int64_t randint(int64_t low, int64_t high);
  // tensor.random_() of int64, 2 words.
  int64_t random_i64();

  // tensor.uniform_(a, b) of float32: 1 word an element. a and b are rounded to float first.
  void uniform_(std::span<float> out, double a, double b);
  // tensor.normal_(mean, sd) of contiguous float32. From 16 elements on: 1 word an element, and 16
  // more unless their count is a multiple of 16. Fewer: 4 words a pair, and the second of an
  // unfinished pair is kept for the next call, whatever tensor that is for.
  void normal_(std::span<float> out, double mean, double sd);

  // torch.randperm(size): size - 1 words. REQUIRES: size <= kMaxPermutation.
  void randperm(std::span<uint32_t> out);
  void randperm(std::span<int64_t> out);
  // All of it, as text: numbers with spaces between them.
  std::string state() const;
  static std::optional<Generator> from_state(std::string_view state);  // empty: it is none

  static constexpr uint64_t kMaxPermutation = 0xffffffffU / 20 - 1;  // torch draws otherwise above

 private:
  std::mt19937 engine_;
  bool has_cached_ = false;
  double cached_ = 0;  // the sine half of a pair of normals
};

}  // namespace dpt
