#include "base/generator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/distributions.h"
#include "base/error.h"

namespace dpt {
namespace {

// Forward Fisher-Yates shuffle. Partners of several elements are drawn before any is swapped, so
// that the cache lines of large permutations arrive side by side.
template <class Index>
void permute(Generator& g, std::span<Index> out) {
  require(out.size() <= Generator::kMaxPermutation, "randperm of too many elements");
  std::iota(out.begin(), out.end(), Index{0});
  const auto size = static_cast<uint32_t>(out.size());
  constexpr uint32_t kAhead = 64;
  std::array<uint32_t, kAhead> partner;
  for (uint32_t i = 0; i + 1 < size;) {
    const uint32_t count = std::min(kAhead, size - 1 - i);
    for (uint32_t k = 0; k < count; ++k) {
      partner[k] = i + k + g.next() % (size - i - k);
      __builtin_prefetch(&out[partner[k]], 1);
    }
    for (uint32_t k = 0; k < count; ++k, ++i) std::swap(out[i], out[partner[k]]);
  }
}

}  // namespace

uint64_t Generator::next64() {
  const uint64_t high = next();
  return high << 32 | next();
}

double Generator::next_double() {
  return static_cast<double>(next64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
}

int64_t Generator::randint(int64_t low, int64_t high) {
  require(low < high, "randint of an empty range");
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const uint64_t word = range >= uint64_t{1} << 28 ? next64() : next();
  return static_cast<int64_t>(static_cast<uint64_t>(low) + word % range);
}

int64_t Generator::random_i64() { return static_cast<int64_t>(next64() & (~uint64_t{0} >> 1)); }

void Generator::uniform_(std::span<float> out, double a, double b) {
  while (!out.empty()) {
    const auto words = engine_.next_words(out.size());
    uniform_values(words, static_cast<float>(a), static_cast<float>(b), out.first(words.size()));
    out = out.subspan(words.size());
  }
}

void Generator::normal_(std::span<float> out, double mean, double sd) {
  const size_t n = out.size();
  if (n < 16) {
    for (float& x : out) {
      double v = cached_;
      if (!std::exchange(has_cached_, !has_cached_)) {
        const double angle = 2 * std::numbers::pi * next_double();
        const double radius = std::sqrt(-2 * std::log1p(-next_double()));
        cached_ = radius * std::sin(angle);
        v = radius * std::cos(angle);
      }
      x = static_cast<float>(v * sd + mean);
    }
    return;
  }
  const auto mean_f = static_cast<float>(mean), sd_f = static_cast<float>(sd);
  uniform_(out, 0, 1);
  normal_values(out.first(n - n % 16), mean_f, sd_f);
  if (n % 16 != 0) {  // as in PyTorch, the last 16 elements are drawn again
    uniform_(out.last(16), 0, 1);
    normal_values(out.last(16), mean_f, sd_f);
  }
}

// Format: the words of the engine, its index, has_cached_, and the bits of cached_.
std::string Generator::state() const {
  return fmt::format("{} {} {:d} {}", fmt::join(engine_.words(), " "), engine_.index(), has_cached_,
                     std::bit_cast<uint64_t>(cached_));
}

std::optional<Generator> Generator::from_state(std::string_view state) {
  std::vector<uint64_t> numbers;
  for (const char *at = state.data(), *end = at + state.size(); at != end;) {
    const auto read = std::from_chars(at, end, numbers.emplace_back());
    if (read.ec != std::errc()) return {};
    at = read.ptr;
    if (at != end && (*at++ != ' ' || at == end)) return {};
  }
  constexpr size_t kWords = MersenneTwister::kWords;
  if (numbers.size() != kWords + 3 || numbers[kWords] > kWords || numbers[kWords + 1] > 1)
    return {};
  if (std::any_of(numbers.begin(), numbers.begin() + kWords,
                  [](uint64_t w) { return w > std::numeric_limits<uint32_t>::max(); }))
    return {};
  MersenneTwister::Words words;
  std::copy_n(numbers.begin(), kWords, words.begin());
  Generator out(0);
  out.engine_ = MersenneTwister(words, numbers[kWords]);
  out.has_cached_ = numbers[kWords + 1] == 1;
  out.cached_ = std::bit_cast<double>(numbers[kWords + 2]);
  return out;
}

void Generator::randperm(std::span<uint32_t> out) { permute(*this, out); }
void Generator::randperm(std::span<int64_t> out) { permute(*this, out); }

}  // namespace dpt
