#include "train/device_plan.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "train/device_exchange.h"
#include "train/device_executor.h"
#include "train/device_gather.h"

namespace dpt {
namespace {

double mib(size_t bytes) { return static_cast<double>(bytes) / 1048576.0; }

std::string names_of(const Session& s) {
  std::vector<std::string> names;
  for (const int gpu : s.gpu_of_worker) names.push_back(fmt::format("cuda:{}", gpu));
  std::string out = fmt::format("GPUs: {}", fmt::join(names, ", "));
  if (s.gpus.count == 0 && !s.spec.devices.count)
    out += fmt::format(" ({} are assumed: `devices` says how many there are)", names.size());
  return out + "\n";
}

std::string rounded_text(const Session& s) {
  return s.exchange.compress ? fmt::format(", as {}", name_of(*s.exchange.compress)) : "";
}

std::string buckets_text(const Session& s) {
  const std::vector<Bucket> buckets = gradient_buckets(s);
  const Program& program = s.programs.rbegin()->second;
  const std::vector<size_t> made = made_after(program, buckets);
  std::string out =
      fmt::format("gradients: summed by NCCL in {} bucket{} of about {:g} MiB{}\n", buckets.size(),
                  buckets.size() == 1 ? "" : "s", bucket_mib(s), rounded_text(s));
  for (size_t b = 0; b < buckets.size(); ++b)
    out += fmt::format("  bucket {:<4} {:>9.3f} MiB  after instruction {} of {} of backward\n", b,
                       mib((buckets[b].end - buckets[b].begin) * sizeof(float)), made[b] + 1,
                       program.backward.size());
  return out;
}

}  // namespace

std::string gpus_text(const Session& s) {
  const bool several = s.who.replicas() > 1;
  std::string out;
  if (several || s.who.span > 1) out += names_of(s);
  if (s.who.span > 1) return out;  // of what each has devices_text tells
  if (several && s.sums_on_host())
    out += fmt::format(
        "gradients: summed by the CPUs{}, {:.3f} MiB of each GPU a step\n", rounded_text(s),
        mib(s.layout.stored * (s.exchange.compress ? sizeof(uint16_t) : sizeof(float))));
  else if (several)
    out += buckets_text(s);
  if (several && s.exchange.shard_states)
    out +=
        fmt::format("optimizer states: each GPU has those of {} elements of {}\n",
                    s.layout.trainable / static_cast<size_t>(s.who.replicas()), s.layout.trainable);
  const DeviceExecutor::Needs n = DeviceExecutor::needs(s);
  out += fmt::format(
      "memory of {} GPU: {:.2f} MiB (weights {:.2f}, gradients {:.2f}, optimizer {:.2f}, "
      "activations {:.2f}), and the libraries' workspaces\n",
      several ? "each" : "the", mib(n.all()), mib(n.weights), mib(n.gradients), mib(n.states),
      mib(n.activations));
  if (s.who.loss_device >= 0)
    out += fmt::format("  {:.2f} MiB more on device {}, for outputs of the others\n",
                       mib(DeviceGather::bytes(s)), s.who.loss_device);
  return out;
}

std::string steps_of_gpus_text(const Session& s) {
  const auto line = [](std::string_view who, std::string_view what) {
    return fmt::format("  {:<12} {}\n", who, what);
  };
  const bool norm = s.spec.clip.max_norm.has_value() || s.scaler.on;
  std::string out;
  if (s.who.span > 1) {
    const std::string last = fmt::format("device {}", s.graph.stage_device.back());
    out = "each step:\n";
    if (s.divisor == Divisor::targets)
      out += line(last, "feed_targets, prologue, sum_divisor, of all chunks");
    return out +
           line("each GPU",
                "forward and backward parts of its stages, in the order above, each "
                "behind its neighbour's") +
           line(last, norm ? "sums of losses, and of squares of all GPUs" : "sum of losses") +
           line("each GPU", "update, if that is a number") +
           line("all", "meet, while the GPUs go on");
  }
  if (s.divisor == Divisor::targets)
    out += "once a step:\n" + line("each GPU", "feed_targets, prologue") +
           line("all", "meet, sum_divisor");
  out +=
      fmt::format("each micro-batch{}:\n", s.spec.sync_batch_norm && s.graph.cuts(Part::forward) > 0
                                               ? ", with all_reduce of what batch norm sums"
                                               : "");
  if (s.who.loss_device >= 0) {
    const std::string place = fmt::format("device {}", s.who.loss_device);
    out += line("each GPU", "feed, forward, gather") + line("all", "meet") +
           line(place, "loss, of all rows") + line("all", "meet") +
           line("each GPU", "scatter, backward");
  } else {
    out += line("each GPU", "feed, forward, loss, backward");
  }
  out += "update:\n";
  const bool pieces = s.exchange.shard_states;
  if (s.sums_on_host())
    out += line("each GPU", "copy gradients and losses to the memory that all share") +
           line("all", "meet") + line("each CPU", "sum_shards of its share") + line("all", "meet") +
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
                                  line("all", "meet") + line("each GPU", "copy all weights back")
                            : line("all GPUs", "all_gather: weights");
  return out + line("all", "meet, while the GPUs go on");
}

}  // namespace dpt
