#include "data/sampler.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

#include "base/fail.h"
#include "base/machine.h"
#include "data/dataset.h"

namespace dpt {
namespace {

static_assert(kSamples.high == Generator::kMaxPermutation);

// As many zeros, which are then accessed in random order.
std::vector<uint32_t> zeros(size_t count) {
  std::vector<uint32_t> out;
  out.reserve(count);
  prefer_huge_pages(out.data(), count * sizeof(uint32_t));
  out.resize(count);
  return out;
}

Order permutation(int64_t samples, bool shuffle, uint64_t seed) {
  if (samples < 0 || static_cast<uint64_t>(samples) > Generator::kMaxPermutation)
    fail(Fault::data, "{} samples are too many to shuffle as PyTorch does; the limit is {}",
         samples, Generator::kMaxPermutation);
  Order order{.indices = zeros(static_cast<size_t>(samples))};
  if (shuffle)
    Generator(seed).randperm(order.indices);
  else
    std::iota(order.indices.begin(), order.indices.end(), 0U);
  return order;
}

}  // namespace

void draw_base_seed(Generator& global) { global.random_i64(); }

Order loader_order(int64_t samples, bool shuffle, Generator& global) {
  draw_base_seed(global);
  const uint64_t seed = shuffle ? static_cast<uint64_t>(global.random_i64()) : 0;
  return permutation(samples, shuffle, seed);
}

Order reproducible_order(int64_t samples, bool shuffle, uint64_t seed, uint64_t epoch) {
  return permutation(samples, shuffle, seed + epoch);
}

WeightedDraws::WeightedDraws(std::vector<double> weights)
    : cumulative_(std::move(weights)), buckets_(cumulative_.size() / 4 + 1) {
  double sum = 0;
  for (double& c : cumulative_) c = sum += c;
  require(sum > 0, "some positive weight");
  for (double& c : cumulative_) c /= sum;
  cumulative_.back() = 1;
  begin_.reserve(buckets_ + 2);
  for (size_t i = 0; i < cumulative_.size(); ++i)
    begin_.resize(std::max(begin_.size(), bucket(cumulative_[i]) + 1), static_cast<uint32_t>(i));
  begin_.resize(buckets_ + 2, static_cast<uint32_t>(cumulative_.size() - 1));
}

Order WeightedDraws::order(Generator& generator, bool repeats) const {
  // Several draws at a time, so that the cache lines of large sets arrive side by side.
  constexpr size_t kAhead = 64;
  std::array<double, kAhead> draws{};
  const size_t samples = cumulative_.size();
  Order out{.indices = zeros(samples)};
  for (size_t done = 0; done < samples; done += kAhead) {
    const size_t count = std::min(kAhead, samples - done);
    for (size_t k = 0; k < count; ++k) {
      draws[k] = generator.next_double();
      __builtin_prefetch(&begin_[bucket(draws[k])]);
    }
    for (size_t k = 0; k < count; ++k) __builtin_prefetch(&cumulative_[begin_[bucket(draws[k])]]);
    for (size_t k = 0; k < count; ++k) {
      const auto at = begin_.begin() + static_cast<std::ptrdiff_t>(bucket(draws[k]));
      const auto first = cumulative_.begin() + at[0], last = cumulative_.begin() + at[1];
      const auto index =
          static_cast<uint32_t>(std::lower_bound(first, last, draws[k]) - cumulative_.begin());
      out.indices[done + k] = index;
    }
  }
  std::vector<uint32_t> drawn = zeros(repeats ? samples : 0);
  out.repeats.reserve(drawn.size());
  for (size_t i = 0; i < drawn.size(); ++i) {
    if (i + kAhead < samples) __builtin_prefetch(&drawn[out.indices[i + kAhead]], 1);
    out.repeats.push_back(drawn[out.indices[i]]++);
  }
  return out;
}

std::vector<double> class_weights(std::span<const int32_t> labels, std::span<const uint32_t> rows) {
  std::vector<double> out(rows.empty() ? labels.size() : rows.size());
  std::unordered_map<int32_t, double> counts;
  const auto label = [&](size_t i) { return labels[rows.empty() ? i : rows[i]]; };
  for (size_t i = 0; i < out.size(); ++i) ++counts[label(i)];
  for (size_t i = 0; i < out.size(); ++i) out[i] = 1 / counts[label(i)];
  return out;
}

int64_t SampleAssignment::of(int rank) const {
  switch (remainder) {
    case Remainder::exact:
      return rank < samples ? (samples - rank + ranks - 1) / ranks : 0;
    case Remainder::pad:
      return (samples + ranks - 1) / ranks;
    case Remainder::drop:
      break;
  }
  return samples / ranks;
}

Order distributed_order(const SampleAssignment& assignment, int rank, bool shuffle, uint64_t seed,
                        uint64_t epoch) {
  return share_of(reproducible_order(assignment.samples, shuffle, seed, epoch), assignment, rank);
}

Order share_of(const Order& all, const SampleAssignment& assignment, int rank) {
  if (assignment.ranks == 1) return all;
  const auto count = static_cast<size_t>(assignment.samples > 0 ? assignment.of(rank) : 0);
  const auto share = [&](const std::vector<uint32_t>& from) {
    std::vector<uint32_t> own(count);
    size_t position = static_cast<size_t>(rank);
    for (uint32_t& value : own) {
      value = from[position % from.size()];  // beyond the end: padding
      position += static_cast<size_t>(assignment.ranks);
    }
    return own;
  };
  return {.indices = share(all.indices),
          .repeats = all.repeats.empty() ? std::vector<uint32_t>() : share(all.repeats)};
}

int64_t Batches::steps() const {
  // Rank 0 has the most samples, the last rank the fewest.
  if (drop_last) return assignment.of(assignment.ranks - 1) / batch;
  return (assignment.of(0) + batch - 1) / batch;
}

RowRange Batches::rows(int rank, int64_t step) const {
  const int64_t samples = assignment.of(rank);
  return {std::min(step * batch, samples), std::min((step + 1) * batch, samples)};
}

int64_t Batches::offset(int rank, int64_t step) const {
  int64_t before = 0;
  for (int r = 0; r < rank; ++r) before += rows(r, step).count();
  return before;
}

int64_t Batches::global_count(int64_t step) const { return offset(assignment.ranks, step); }

}  // namespace dpt
