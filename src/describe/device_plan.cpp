#include "describe/device_plan.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "engine/gpu/exchange.h"
#include "engine/gpu/executor.h"
#include "engine/gpu/gather.h"

namespace dpt {
namespace {

double mib(size_t bytes) { return static_cast<double>(bytes) / kMiB; }

std::string names_of(const Session& s) {
  std::vector<std::string> names;
  for (const int gpu : s.gpu_of_worker) names.push_back(fmt::format("cuda:{}", gpu));
  std::string out = fmt::format("GPUs: {}", fmt::join(names, ", "));
  if (s.gpus.count == 0 && !s.spec.devices.count)
    out += fmt::format(" ({} assumed; set `devices` to plan for another number)", names.size());
  return out + "\n";
}

std::string rounded_text(const Session& s) {
  return s.exchange.compress ? fmt::format(", as {}", name_of(*s.exchange.compress)) : "";
}

std::string buckets_text(const Session& s, const GpuShare& share) {
  const std::vector<Bucket> buckets = gradient_buckets(s, share);
  const Program& program = s.programs.rbegin()->second;
  const bool stages = s.topology.devices_per_replica > 1;
  const std::vector<size_t> made =
      stages ? made_after_ops(s, share, buckets) : made_after(program, buckets);
  std::string out = fmt::format("gradients{}: summed by NCCL in {} of about {:g} MiB{}\n",
                                stages ? fmt::format(" of device {}", share.device()) : "",
                                counted(buckets.size(), "bucket"), bucket_mib(s), rounded_text(s));
  for (size_t b = 0; b < buckets.size(); ++b)
    out += fmt::format(
        "  bucket {:<4} {:>9.3f} MiB  after {}\n", b, mib(buckets[b].count() * sizeof(float)),
        stages ? fmt::format("part {} of {}", made[b] + 1,
                             s.plan.schedule[static_cast<size_t>(share.device())].size())
               : fmt::format("instruction {} of {} of backward", made[b] + 1,
                             program.backward.size()));
  return out;
}

// How gradients are summed over replicas.
std::string sums_text(const Session& s) {
  std::string out;
  if (s.sums_on_host())
    out += fmt::format(
        "gradients: summed by the CPUs{}, {:.3f} MiB of each {} a step\n", rounded_text(s),
        mib(s.layout.stored * (s.exchange.compress ? sizeof(uint16_t) : sizeof(float))),
        s.topology.devices_per_replica > 1 ? "replica" : "GPU");
  for (int d = 0; d < s.topology.devices_per_replica && !s.sums_on_host(); ++d)
    out += buckets_text(s, {s, d});
  if (s.exchange.shard_states)
    out += fmt::format("optimizer states: each {} has those of {} elements of {}\n",
                       s.topology.devices_per_replica > 1 ? "replica" : "GPU",
                       s.layout.trainable / static_cast<size_t>(s.topology.replicas()),
                       s.layout.trainable);
  return out;
}

std::string line(std::string_view actor, std::string_view what) {
  return fmt::format("  {:<12} {}\n", actor, what);
}

std::string steps_in_stages_text(const Session& s, bool norm) {
  const bool several = s.topology.replicas() > 1;
  const std::string_view with = s.sums_on_host() ? " by its CPU" : " by NCCL";
  const std::string last = fmt::format("device {}", s.graph.stage_device.back());
  std::string out = "each step:\n";
  if (s.divisor == Divisor::targets)
    out += line(last, fmt::format("load_targets, prologue, sum_divisor, of all chunks{}",
                                  several ? " and replicas" : ""));
  const bool host = s.exchange.backend == Exchange::Backend::host;
  const std::string copies = s.stages_are_processes()
                                 ? fmt::format("; copies {}", host ? "by their CPUs" : "by NCCL")
                                 : "";
  out += line("each GPU", fmt::format("forward and backward parts of its stages, in the order "
                                      "above, each after its neighbor's{}",
                                      copies));
  if (several)
    out +=
        line("each GPU", fmt::format("{} over replicas{}",
                                     s.exchange.shard_states ? "its piece of sums" : "sums", with));
  out += line(last,
              fmt::format("sum{} of losses{}{}", norm ? "s" : "", several ? " of all replicas" : "",
                          norm ? ", and of squares of all GPUs" : ""));
  out += line("each GPU", fmt::format("update{}, if those are finite",
                                      s.exchange.shard_states ? " of its piece" : ""));
  if (s.exchange.shard_states) out += line("each GPU", "weights to the other replicas");
  return out + line("all", "barrier, while the GPUs run");
}

}  // namespace

std::string gpus_text(const Session& s) {
  const bool several = s.topology.replicas() > 1;
  std::string out;
  if (several || s.topology.devices_per_replica > 1) out += names_of(s);
  if (several) out += sums_text(s);
  if (s.topology.devices_per_replica > 1) return out;  // devices_text() describes these devices
  const GpuExecutor::Needs n = GpuExecutor::needs(s);
  out += fmt::format(
      "memory of {} GPU: {:.2f} MiB (weights {:.2f}, gradients {:.2f}, optimizer {:.2f}, "
      "activations {:.2f}), and the libraries' workspaces\n",
      several ? "each" : "the", mib(n.all()), mib(n.weights), mib(n.gradients), mib(n.states),
      mib(n.activations));
  if (s.topology.loss_device >= 0)
    out += fmt::format("  {:.2f} MiB more on device {}, for the outputs of the other GPUs\n",
                       mib(GpuGather::bytes(s)), s.topology.loss_device);
  return out;
}

std::string steps_of_gpus_text(const Session& s) {
  const bool norm = s.spec.clip.max_norm.has_value() || s.scaler.on;
  std::string out;
  if (s.topology.devices_per_replica > 1) return steps_in_stages_text(s, norm);
  if (s.divisor == Divisor::targets)
    out += "once a step:\n" + line("each GPU", "load_targets, prologue") +
           line("all", "barrier, sum_divisor");
  out += fmt::format("each micro-batch{}:\n",
                     s.spec.sync_batch_norm && s.graph.sync_points(Part::forward) > 0
                         ? ", with all_reduce of what batch norm sums"
                         : "");
  if (s.topology.loss_device >= 0) {
    const std::string place = fmt::format("device {}", s.topology.loss_device);
    const std::string turn = s.sums_on_host() ? line("all", "barrier") : "";
    const std::string_view by = s.sums_on_host() ? "" : " by NCCL";
    out += line("each GPU", fmt::format("load, forward, gather{}", by)) + turn +
           line(place, "loss, of all rows") + turn +
           line("each GPU", fmt::format("scatter{}, backward", by));
  } else {
    out += line("each GPU", "load, forward, loss, backward");
  }
  out += "update:\n";
  const bool pieces = s.exchange.shard_states;
  if (s.sums_on_host())
    out += line("each GPU", "copy gradients and losses to the memory that all share") +
           line("all", "barrier") + line("each CPU", "sum_shards of its share") +
           line("all", "barrier") +
           line("each GPU", pieces ? "copy its piece of the sums back" : "copy the sums back");
  else
    out += line("all GPUs",
                pieces ? "reduce_scatter: each bucket once the last backward has made it; "
                         "all_reduce: losses"
                       : "all_reduce: each bucket once the last backward has made it, losses");
  if (pieces && norm)
    out += line("each GPU", "sum_squares of its piece") + line("all", "sum them") +
           line("each GPU", "update of its piece");
  else
    out += line("each GPU", fmt::format("{}update{}", norm ? "sum_squares, " : "",
                                        pieces ? " of its piece" : ""));
  if (pieces)
    out += s.sums_on_host() ? line("each GPU", "copy its weights to the memory that all share") +
                                  line("all", "barrier") + line("each GPU", "copy all weights back")
                            : line("all GPUs", "all_gather: weights");
  return out + line("all", "barrier, while the GPUs run");
}

}  // namespace dpt
