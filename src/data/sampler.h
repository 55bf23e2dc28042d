// Which samples each rank takes, in which order: pure functions of sizes, seeds and epochs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/generator.h"
#include "data/drawn_samples.h"

namespace dpt {

struct Order {
  std::vector<uint32_t> indices;  // sample numbers, in the order in which they are taken
  // How many times each was drawn before in the epoch, by any rank; empty: never.
  std::vector<uint32_t> repeats{};
  DrawnSamples samples() const { return {indices, repeats}; }
};

// Draws the base seed of worker processes. PyTorch does so from its global generator whenever a
// DataLoader is iterated, shuffled or not, even without worker processes.
void draw_base_seed(Generator& global);

// The order of a PyTorch DataLoader for one epoch. `global` corresponds to the generator that
// torch.manual_seed seeds: draws the base seed from it and, for a shuffled order, the seed of the
// permutation. Throws Error{data} if there are more samples than Generator::kMaxPermutation.
Order loader_order(int64_t samples, bool shuffle, Generator& global);

// One order for all ranks and modes, determined by seed and epoch: torch.randperm(samples) of a
// generator seeded with seed + epoch.
Order reproducible_order(int64_t samples, bool shuffle, uint64_t seed, uint64_t epoch);

// torch.multinomial(weights, num_samples=N, replacement=True) of float64 weights [N], as
// WeightedRandomSampler draws the samples of an epoch: two words of the generator each.
class WeightedDraws {
 public:
  // REQUIRES: weights are not negative, and one is positive.
  explicit WeightedDraws(std::vector<double> weights);
  // repeats: whether Order::repeats is wanted; else it is empty.
  Order order(Generator& generator, bool repeats) const;

 private:
  size_t bucket(double x) const { return static_cast<size_t>(x * static_cast<double>(buckets_)); }

  std::vector<double> cumulative_;  // the last is 1
  size_t buckets_;                  // fewer than weights, so that their table takes less memory
  // For each bucket, the first index whose cumulative weight is in it or in a later one: a draw in
  // the bucket searches from there to where the next bucket begins (Chen and Asau, 1974).
  std::vector<uint32_t> begin_;
};

// The weight of each sample: 1 / the number of samples of its class, so that all classes that occur
// are drawn equally often. labels: the class of each sample; rows: those that are trained on, in
// order; empty: all.
std::vector<double> class_weights(std::span<const int32_t> labels, std::span<const uint32_t> rows);

// Sample assignment: each rank takes every `ranks`-th sample of the whole order.
struct SampleAssignment {
  enum class Remainder {
    exact,  // each sample once; counts of ranks may differ by one
    pad,    // PyTorch's default: repeats the first samples until all counts are equal
    drop,   // PyTorch's drop_last: leaves out the last samples
  };
  int64_t samples = 0;
  int ranks = 1;
  Remainder remainder = Remainder::exact;
  int64_t of(int rank) const;  // how many samples the rank takes
};

// PyTorch's DistributedSampler: the share of `rank` in reproducible_order(). The sampler's seed is
// 0 unless given, whatever torch.manual_seed was; without set_epoch() its epoch stays 0.
Order distributed_order(const SampleAssignment& assignment, int rank, bool shuffle, uint64_t seed,
                        uint64_t epoch);
// The share of `rank` in any order of all samples. REQUIRES: as many as assignment.samples.
Order share_of(const Order& all, const SampleAssignment& assignment, int rank);

// Positions begin to end - 1.
struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

// Divides one epoch into steps. The global batch of a step is the concatenation of all ranks' local
// batches. In reproducible modes there is one order for all, so it counts as one rank with the
// global batch as its own.
struct Batches {
  SampleAssignment assignment;
  int64_t batch = 1;       // samples per rank and step
  bool drop_last = false;  // omit steps in which any rank has a smaller batch

  int64_t steps() const;
  RowRange rows(int rank, int64_t step) const;   // in the rank's own order; may be empty
  int64_t offset(int rank, int64_t step) const;  // offset in the global batch
  int64_t global_count(int64_t step) const;      // over all ranks
};

}  // namespace dpt
