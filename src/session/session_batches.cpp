#include "session/session_batches.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/count.h"

namespace dpt {
namespace {

// "96 or 128"; if n is less than `of`, only the multiple above: "4".
std::string multiples_around(int64_t n, int64_t of) {
  const int64_t below = n / of * of;
  return below == 0 ? fmt::format("{}", of) : fmt::format("{} or {}", below, below + of);
}

// Limits the memory for bookkeeping per micro-batch and shard or stage.
void check_pieces(const Spec& spec, const Devices& devices, int64_t micro_batches, Diagnostics& d) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const int64_t stages = devices.pipeline ? int64_t{devices.topology.devices_per_replica} *
                                                devices.pipeline->stages_a_device
                                          : 1;
  const int64_t pieces =
      (Checked(micro_batches) * std::max<int64_t>(devices.topology.shards, stages)).value();
  if (pieces > kMost)
    d.error(spec.at("accumulate"),
            fmt::format("{} micro-batches for {} {} are {} pieces of a batch; at most {} are "
                        "possible: use fewer micro-batches (`accumulate`, `chunks`)",
                        micro_batches, std::max<int64_t>(devices.topology.shards, stages),
                        devices.topology.shards >= stages ? "shards" : "stages", pieces, kMost));
}

}  // namespace

bool SessionBatches::last_chunk(const StepRows& rows, size_t micro) const {
  const auto filled = [](const ShardRows& s) { return s.rows.count() > 0; };
  const auto together = static_cast<size_t>(chunks);
  for (size_t m = micro + 1; m < rows.micro.size() && m % together != 0; ++m)
    if (std::ranges::any_of(rows.micro[m], filled)) return false;
  return true;
}

SessionBatches make_batches(const Spec& spec, const Devices& devices, const SessionData& sets,
                            Diagnostics& d) {
  SessionBatches out;
  const DataSpec& data = spec.data;
  const int64_t replicas = devices.topology.replicas();
  const int64_t n = sets.train_samples();
  if (!data.batch_size && !data.batch_size_per_replica) {
    d.error(spec.at("data.batch_size"), "a session needs a number instead of 'auto'");
    return out;
  }
  out.global_batch =
      data.batch_size
          ? *data.batch_size
          : (Checked(*data.batch_size_per_replica) * replicas * spec.accumulate).value();
  const bool per_replica_sampling = devices.topology.per_replica_sampling;
  if (per_replica_sampling && out.global_batch % replicas != 0)
    d.error(spec.at("data.batch_size"),
            fmt::format("batch_size {} cannot be split evenly across {} {}; use {}, or give "
                        "batch_size_per_replica",
                        out.global_batch, replicas,
                        devices.topology.devices_per_replica == 1 ? "ranks" : "replicas",
                        multiples_around(out.global_batch, replicas)));
  if (data.pad && !per_replica_sampling)
    d.error(spec.at("data.pad"),
            "`pad` needs `parallel: ddp` without `reproducible`: only then does each rank have "
            "its own samples; leave it out");
  if (!d.ok()) return out;
  Batches batches;
  batches.assignment = {.samples = n,
                        .ranks = per_replica_sampling ? devices.topology.replicas() : 1,
                        .remainder = data.pad ? SampleAssignment::Remainder::pad
                                              : SampleAssignment::Remainder::exact};
  batches.batch = per_replica_sampling ? out.global_batch / replicas : out.global_batch;
  batches.drop_last = data.drop_last;
  if (batches.steps() == 0)
    d.error(spec.at("data.drop_last"),
            fmt::format(
                "the data set has {}, fewer than a batch of {}; use a smaller batch_size, or leave "
                "drop_last out",
                counted(n, "sample"), out.global_batch));
  if (!d.ok()) return out;
  if (devices.pipeline) out.chunks = devices.pipeline->chunks;
  // More micro-batches than samples would leave some of them empty.
  const int64_t parts = spec.accumulate * out.chunks;
  if (devices.pipeline && devices.pipeline->stages_a_device > 1 && parts > batches.batch)
    d.error(
        spec.at("data.batch_size"),
        fmt::format("a batch of {} samples cannot be split into {} chunks; use fewer `chunks` or a "
                    "larger batch",
                    batches.batch, parts));
  check_pieces(spec, devices, std::min(parts, batches.batch), d);
  if (!d.ok()) return out;
  out.train.emplace(batches, devices.topology, std::min(parts, batches.batch));
  if (!sets.test) return out;
  Topology common =
      devices.topology;  // the evaluated set has one order, split evenly over all shards
  common.reproducible = true;
  out.test.emplace(Batches{.assignment = {.samples = sets.test_samples(),
                                          .ranks = 1,
                                          .remainder = SampleAssignment::Remainder::exact},
                           .batch = spec.evaluate.batch_size},
                   common, 1);
  return out;
}

}  // namespace dpt
