// Which samples are taken, in which order, by whom: pure functions of sizes, seeds and epochs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/generator.h"

namespace dpt {

struct Order {
  std::vector<uint32_t> indices;  // of samples, in the order in which they are taken
};

// What torch draws from its global generator whenever a DataLoader is iterated over, shuffled or
// not, for training or evaluation: the seed of worker processes, even where there are none.
void draw_base_seed(Generator& global);

// A torch DataLoader's order for one epoch. `global` is what torch.manual_seed seeds: the base seed
// is drawn from it and, where the order is shuffled, one more that seeds the permutation.
// Throws Error{data} if there are more samples than torch permutes in this way.
Order loader_order(int64_t samples, bool shuffle, Generator& global);

// One order for all ranks and modes, decided by seed and epoch alone: torch.randperm(samples) of a
// generator seeded with seed + epoch.
Order reproducible_order(int64_t samples, bool shuffle, uint64_t seed, uint64_t epoch);

// How samples are dealt to ranks: each takes every `ranks`-th of the whole order.
struct Deal {
  enum class Rest {
    exact,  // every sample once; ranks may differ by one
    pad,    // torch's default: the first samples again, until all ranks have as many
    drop,   // torch's drop_last: the last samples are left out
  };
  int64_t samples = 0;
  int ranks = 1;
  Rest rest = Rest::exact;
  int64_t of(int rank) const;  // how many samples the rank takes
};

// torch's DistributedSampler: the share of `rank` of reproducible_order. Its seed is 0 unless
// given, whatever torch.manual_seed was; without set_epoch the epoch stays 0.
Order distributed_order(const Deal& deal, int rank, bool shuffle, uint64_t seed, uint64_t epoch);

// Positions begin..end.
struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

// How one epoch is cut into steps. The global batch of a step is the concatenation of all ranks'
// local batches; where orders are reproducible there is one order, so one "rank" with the global
// batch as its own.
struct Batches {
  Deal deal;
  int64_t batch = 1;       // samples a rank takes in a step
  bool drop_last = false;  // leave out steps in which any rank's batch is smaller

  int64_t steps() const;
  RowRange rows(int rank, int64_t step) const;  // of the rank's own order; may be empty
  int64_t place(int rank, int64_t step) const;  // of its first row in the global batch
  int64_t global_count(int64_t step) const;     // samples of all ranks
};

}  // namespace dpt
