#include "base/generator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "base/error.h"

namespace dpt {
namespace {

// Note [fused products]: the last bit of a*b + c*d depends on which product is fused with the
// addition. Every fused operation below is therefore written as std::fma, and the others must not
// be contracted (-ffp-contract=off). std::fma rounds once on every machine; glibc uses the
// instruction if the CPU has it.

// Natural logarithm for 0 < x <= 1: the polynomial of Cephes' logf (S. Moshier), which PyTorch's
// vectorized code uses.
float log_cephes(float x) {
  const auto bits = std::bit_cast<uint32_t>(std::max(x, 0x1p-126F));
  auto e = static_cast<float>(static_cast<int>(bits >> 23) - 126);
  auto m = std::bit_cast<float>((bits & 0x007fffffU) | 0x3f000000U);  // in [0.5, 1)
  if (m < 0.707106781186547524F) {
    e -= 1;
    m = (m - 1) + m;
  } else {
    m = m - 1;
  }
  constexpr float kP[] = {7.0376836292e-2F,  -1.1514610310e-1F, 1.1676998740e-1F,
                          -1.2420140846e-1F, 1.4249322787e-1F,  -1.6668057665e-1F,
                          2.0000714765e-1F,  -2.4999993993e-1F, 3.3333331174e-1F};
  const float z = m * m;
  float y = kP[0];
  for (int k = 1; k < 9; ++k) y = std::fma(y, m, kP[k]);
  y = y * m;
  const float t = e * -2.12194440e-4F;  // rounded product; the next one is fused
  y = std::fma(y, z, t);
  y = std::fma(-z, 0.5F, y);
  return std::fma(e, 0.693359375F, m + y);
}

// Sine and cosine for x >= 0, also from Cephes.
std::pair<float, float> sin_cos_cephes(float x) {
  const int octant = (static_cast<int>(x * 1.27323954473516F) + 1) & ~1;  // rounded up to even
  const auto k = static_cast<float>(octant);
  x = std::fma(k, -0.78515625F, x);  // pi / 4 in three parts
  x = std::fma(k, -2.4187564849853515625e-4F, x);
  x = std::fma(k, -3.77489497744594108e-8F, x);
  const float z = x * x;
  float c = std::fma(std::fma(2.443315711809948e-5F, z, -1.388731625493765e-3F), z,
                     4.166664568298827e-2F) *
            z;
  const float half = z * 0.5F;  // rounded product; c * z is fused
  c = std::fma(c, z, -half) + 1;
  float s = std::fma(std::fma(-1.9515295891e-4F, z, 8.3321608736e-3F), z, -1.6666654611e-1F) * z;
  s = std::fma(s, x, x);
  if ((octant & 2) != 0) std::swap(s, c);
  return {(octant & 4) != 0 ? -s : s, (~(octant - 2) & 4) != 0 ? -c : c};
}

// Box-Muller transform of 16 uniform values in place: elements j and j + 8 form a pair.
void normal_block(float* d, float mean, float sd) {
  for (int j = 0; j < 8; ++j) {
    const float radius = std::sqrt(-2.0F * log_cephes(1 - d[j]));
    const auto [s, c] = sin_cos_cephes(6.283185307179586F * d[j + 8]);
    d[j] = std::fma(radius * c, sd, mean);
    d[j + 8] = std::fma(radius * s, sd, mean);
  }
}

// A float in [0, 1) from the low 24 bits.
float unit_float(uint32_t word) { return static_cast<float>(word & 0xffffffU) * 0x1p-24F; }

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
  const auto low = static_cast<float>(a), high = static_cast<float>(b);
  const float width = high - low;
  for (float& x : out) {
    const float v = std::fma(unit_float(next()), width, low);
    x = v == high ? low : v;
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
  for (float& x : out) x = unit_float(next());
  for (size_t i = 0; i + 15 < n; i += 16) normal_block(&out[i], mean_f, sd_f);
  if (n % 16 != 0) {  // as in PyTorch, the last 16 elements are drawn again
    for (float& x : out.last(16)) x = unit_float(next());
    normal_block(&out[n - 16], mean_f, sd_f);
  }
}

// Format: the standard's text form of the engine (state words, then the index), has_cached_, and
// the bits of cached_.
std::string Generator::state() const {
  std::ostringstream out;
  out << engine_ << ' ' << has_cached_ << ' ' << std::bit_cast<uint64_t>(cached_);
  return out.str();
}

std::optional<Generator> Generator::from_state(std::string_view state) {
  // operator>> of the standard library does not validate: check for 624 words and an index of 0 to
  // 624.
  std::vector<uint64_t> numbers;
  for (const char *at = state.data(), *end = at + state.size(); at != end;) {
    const auto read = std::from_chars(at, end, numbers.emplace_back());
    if (read.ec != std::errc()) return {};
    at = read.ptr;
    if (at != end && (*at++ != ' ' || at == end)) return {};
  }
  constexpr size_t kWords = std::mt19937::state_size;
  if (numbers.size() != kWords + 3 || numbers[kWords] > kWords || numbers[kWords + 1] > 1)
    return {};
  if (std::any_of(numbers.begin(), numbers.begin() + kWords,
                  [](uint64_t w) { return w > std::numeric_limits<uint32_t>::max(); }))
    return {};
  Generator out(0);
  std::istringstream in{std::string(state)};
  if (!(in >> out.engine_)) return {};
  out.has_cached_ = numbers[kWords + 1] == 1;
  out.cached_ = std::bit_cast<double>(numbers[kWords + 2]);
  return out;
}

void Generator::randperm(std::span<uint32_t> out) { permute(*this, out); }
void Generator::randperm(std::span<int64_t> out) { permute(*this, out); }

}  // namespace dpt
