#include "engine/cpu/weight_average.h"

#include <algorithm>
#include <span>

#include "backend/cpu/half_kernels.h"
#include "comm/tree.h"
#include "engine/cpu/memory_watch.h"
#include "session/own_weights.h"

namespace dpt {
namespace {

constexpr size_t kTile = 1024;  // elements averaged at a time, which stay in the L1 cache

}  // namespace

WeightAverage::WeightAverage(const CpuWorker& worker, const Buffers& shared) : worker_(worker) {
  const Topology& topology = worker.session.devices.topology;
  if (!topology.replicas_own_weights()) return;
  const auto replicas = static_cast<size_t>(topology.replicas());
  averaged_.resize(1 + static_cast<size_t>(worker.session.settings.states()));
  for (size_t r = 0; r < replicas; ++r) {
    const Buffers own = shared.of_replica(static_cast<int>(r));
    averaged_[0].push_back(own.weights());
    for (size_t i = 1; i < averaged_.size(); ++i)
      averaged_[i].push_back(own.state(static_cast<int>(i) - 1));
  }
  parameters_ = averaged_parameters(worker.session.model, topology, worker.number);
  buffers_ = averaged_buffers(worker.session.model, topology, worker.number);
  copied_ = copied_buffers(worker.session.model, worker.number);
  tile_.resize(replicas * kTile);
  parts_.resize(replicas);
}

void WeightAverage::run() {
  const Session& session = worker_.session;
  const bool pure = session.precision.policy.level == PrecisionPolicy::Level::pure;
  for (size_t i = 0; i < averaged_.size(); ++i) {
    const bool weights = i == 0 || (session.settings.averages() &&
                                    static_cast<int>(i) - 1 == session.settings.average_state());
    average(averaged_[i], parameters_, pure && weights);
  }
  for (const UpdateRange& range : buffers_) average(averaged_[0], range, false);
  for (const UpdateRange& range : copied_)
    for (float* const replica : std::span(averaged_[0]).subspan(1)) {
      if (memory_watch) memory_watch->write(replica + range.begin, range.count() * sizeof(float));
      std::copy_n(averaged_[0][0] + range.begin, range.count(), replica + range.begin);
    }
}

void WeightAverage::average(const std::vector<float*>& replicas, UpdateRange range, bool rounds) {
  const auto count = static_cast<float>(replicas.size());
  for (size_t at = range.begin; at < range.end; at += kTile) {
    const size_t n = std::min(kTile, range.end - at);
    for (size_t r = 0; r < replicas.size(); ++r) {
      if (memory_watch) memory_watch->read(replicas[r] + at, n * sizeof(float));
      parts_[r] = tile_.data() + r * kTile;
      std::copy_n(replicas[r] + at, n, parts_[r]);
    }
    sum_tree(std::span<float* const>(parts_), 0, n);
    for (size_t i = 0; i < n; ++i) tile_[i] /= count;
    if (rounds) round_weights(worker_.session.precision.policy.half, tile_.data(), n);
    for (float* const replica : replicas) {
      if (memory_watch) memory_watch->write(replica + at, n * sizeof(float));
      std::copy_n(tile_.data(), n, replica + at);
    }
  }
}

}  // namespace dpt
