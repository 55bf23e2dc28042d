#include "train/sample_order.h"

#include <utility>

namespace dpt {
namespace {

// Turns positions in the trained part of the data set into sample numbers.
Order of_samples(const Session& s, Order order) {
  if (!s.data.train_rows.empty())
    for (uint32_t& index : order.indices) index = s.data.train_rows[index];
  return order;
}

// An order with replacement.
Order drawn_order(const Session& s, Generator& generator) {
  return s.data.weighted->order(generator, s.data.loader->is_random());
}

// The same for all ranks, drawn by seed and epoch.
Order drawn_order(const Session& s, uint64_t seed) {
  Generator generator(seed);
  return drawn_order(s, generator);
}

}  // namespace

Order make_order(RankState& rank, int64_t epoch) {
  const Session& s = rank.session;
  const DataSpec& data = s.settings.spec.data;
  const auto epoch_index = static_cast<uint64_t>(data.reshuffle ? epoch : 0);
  const Topology& topology = s.devices.topology;
  const bool draws = s.data.weighted.has_value();
  const auto seed = static_cast<uint64_t>(s.settings.spec.seed);
  if (topology.reproducible) {
    draw_base_seed(rank.generator);
    if (draws) return of_samples(s, drawn_order(s, seed + epoch_index));
    return of_samples(s,
                      reproducible_order(s.data.train_samples(), data.shuffle, seed, epoch_index));
  }
  if (topology.per_replica_sampling) {
    // As with DistributedSampler, whatever torch.manual_seed was.
    const auto sampler_seed = static_cast<uint64_t>(data.sampler_seed);
    draw_base_seed(rank.generator);
    const int replica = topology.replica(rank.number() * topology.workers_per_rank());
    const SampleAssignment& assignment = s.batches.train->assignment();
    return of_samples(
        s, draws ? share_of(drawn_order(s, sampler_seed + epoch_index), assignment, replica)
                 : distributed_order(assignment, replica, data.shuffle, sampler_seed, epoch_index));
  }
  const bool kept = data.shuffle && !data.reshuffle;
  Order order;
  if (kept && epoch > 0) {
    order = std::move(rank.order);
  } else {
    rank.drawn_by = rank.generator;
    if (draws) {
      draw_base_seed(rank.generator);
      order = of_samples(s, drawn_order(s, rank.generator));
    } else {
      order = of_samples(s, loader_order(s.data.train_samples(), data.shuffle, rank.generator));
    }
  }
  // A fixed order is drawn before the first loader exists, and every loader draws a base seed.
  if (kept) draw_base_seed(rank.generator);
  return order;
}

}  // namespace dpt
