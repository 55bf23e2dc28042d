// local_sgd: each replica trains weights of its own on batches of its own, and after every K steps
// all replicas continue with the average. A replica is a process with samples as by
// DistributedSampler. For replica r of R, step t = 1, 2, ... and an optimizer with state s:
//
//   (w[r], s[r]) = optimizer step (w[r], s[r], gradient of the mean loss of replica r's batch)
//   every K steps, and after an epoch's last step:  w[r] = mean of w,  s[r] = mean of s
//
// The weights are averaged as in Stich, "Local SGD Converges Fast and Communicates Little" (2019),
// and in torch.distributed.optim.PostLocalSGDOptimizer; optimizer states as in Yu, Jin and Yang,
// "On the Linear Speedup Analysis of Communication Efficient Momentum SGD for Distributed
// Non-Convex Optimization" (2019), algorithm 1, which makes one copy of both the whole state of a
// run after an average. Buffers, such as running statistics, are averaged like weights. A replica
// without samples in an uneven last batch makes no update in that step.
#include <algorithm>

#include "base/fail.h"
#include "parallel/mode.h"
#include "parallel/rewrites.h"

namespace dpt::modes {
namespace {

struct LocalSgd {
  static constexpr Usage kUsage{"torch.distributed.optim.PostLocalSGDOptimizer",
                                "parallel: {local_sgd: 8}\n"
                                "parallel: {local_sgd: {every: 8, devices: 4, timeout: 120}}"};

  int64_t every = 8;
  std::optional<int64_t> devices;
  std::optional<double> timeout;

  static KeyTable<LocalSgd> keys() {
    KeyTable<LocalSgd> table;
    table
        .optional("every", &LocalSgd::every,
                  "steps between two averages of the replicas' weights and optimizer states",
                  kPositive)
        .optional(kDevicesKey, &LocalSgd::devices, kDevicesDoc, kDeviceCount)
        .optional("timeout", &LocalSgd::timeout,
                  "seconds without a heartbeat after which a rank counts as lost (60)", kPositive);
    return table;
  }
};

Topology topology(const std::any& settings, const ModeQuery& query) {
  if (query.gpus)
    fail(Fault::spec,
         "parallel mode 'local_sgd' trains on CPUs only: GPUs cannot average the weights of their "
         "replicas between steps; write `device: cpu`, or `parallel: ddp`");
  if (query.devices_per_replica > 1)
    fail(Fault::spec,
         "parallel mode 'local_sgd' needs the whole model on one device, but layers are placed on "
         "{} devices; write `parallel: ddp`, whose replicas may span devices, or leave out "
         "`device` of the layers",
         query.devices_per_replica);
  ModeQuery q = query;
  if (q.world) q.devices = *q.world;
  Topology out = place_workers(q, std::clamp(query.machine_cores, 2, 4), true);
  if (out.shards % out.replicas() != 0)
    fail(Fault::spec,
         "{} shards cannot be split evenly across {} replicas, each of which trains its own "
         "shards; use `reproducible: {}`",
         out.shards, out.replicas(), (out.shards / out.replicas() + 1) * out.replicas());
  out.average_every = std::any_cast<const LocalSgd&>(settings).every;
  return out;
}

Plan rewrite(Plan plan, const PlanTarget& target) {
  plan.mode = "local_sgd";
  return average_weights(share_gradients(std::move(plan), target), target);
}

std::optional<double> timeout(const std::any& settings) {
  return std::any_cast<const LocalSgd&>(settings).timeout;
}

std::optional<int64_t> devices(const std::any& settings) {
  return std::any_cast<const LocalSgd&>(settings).devices;
}

}  // namespace

ModeType local_sgd() {
  return {registry_entry<LocalSgd>("local_sgd",
                                   "Local SGD: one process per device trains weights of its own; "
                                   "all average them every few steps."),
          topology,
          rewrite,
          timeout,
          true,
          nullptr,
          nullptr,
          devices};
}

}  // namespace dpt::modes
