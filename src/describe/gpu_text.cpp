#include "describe/gpu_text.h"

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

std::string names_of(const Spec& spec, const Devices& devices) {
  const Topology& topology = devices.topology;
  const Rows own = topology.workers_of_host(topology.host);
  std::vector<std::string> names;
  for (int64_t w = own.begin; w < own.end; ++w)
    names.push_back(fmt::format("cuda:{}", devices.gpu_of_worker[static_cast<size_t>(w)]));
  std::string out = fmt::format("GPUs: {}", fmt::join(names, ", "));
  if (topology.hosts() > 1) out += fmt::format(" on host {}", topology.host);
  if (devices.gpus.count == 0 && !spec.devices.count)
    out += fmt::format(" ({} assumed; set `devices` to plan for another number)", names.size());
  return out + "\n";
}

std::string rounded_text(const Devices& devices) {
  return devices.exchange.compress ? fmt::format(", as {}", name_of(*devices.exchange.compress))
                                   : "";
}

std::string buckets_text(const Session& s, int device) {
  const std::vector<Bucket>& buckets = s.plan.buckets[static_cast<size_t>(device)];
  std::string out = fmt::format(
      "gradients{}: summed by NCCL in {} of about {:g} MiB{}\n",
      s.devices.topology.devices_per_replica > 1 ? fmt::format(" of device {}", device) : "",
      counted(buckets.size(), "bucket"), bucket_mib(s.devices), rounded_text(s.devices));
  for (size_t b = 0; b < buckets.size(); ++b)
    out += fmt::format("  bucket {:<4} {:>9.3f} MiB\n", b, mib(buckets[b].count() * sizeof(float)));
  return out;
}

// How gradients are summed over replicas.
std::string sums_text(const Session& s) {
  std::string out;
  if (s.devices.sums_on_host())
    out += fmt::format("gradients: summed by the CPUs{}\n", rounded_text(s.devices));
  for (int d = 0; d < s.devices.topology.devices_per_replica && !s.devices.sums_on_host(); ++d)
    out += buckets_text(s, d);
  if (s.devices.exchange.shard_states)
    out +=
        fmt::format("optimizer states: each {} holds the states of {} elements of {}\n",
                    s.devices.topology.devices_per_replica > 1 ? "replica" : "GPU",
                    s.model.layout.trainable / static_cast<size_t>(s.devices.topology.replicas()),
                    s.model.layout.trainable);
  return out;
}

}  // namespace

std::string gpus_text(const Session& s) {
  const bool several = s.devices.topology.replicas() > 1;
  std::string out;
  if (several || s.devices.topology.devices_per_replica > 1)
    out += names_of(s.settings.spec, s.devices);
  if (several) out += sums_text(s);
  if (s.devices.topology.devices_per_replica > 1)
    return out;  // devices_text() describes these devices
  const GpuExecutor::Needs n = GpuExecutor::needs(s);
  out += fmt::format(
      "memory of {} GPU: {:.2f} MiB (weights {:.2f}, gradients {:.2f}, optimizer {:.2f}, "
      "activations {:.2f}), and the libraries' workspaces\n",
      several ? "each" : "the", mib(n.all()), mib(n.weights), mib(n.gradients), mib(n.states),
      mib(n.activations));
  if (s.devices.topology.loss_device >= 0)
    out += fmt::format("  {:.2f} MiB more on device {}, for the outputs of the other GPUs\n",
                       mib(GpuGather::bytes(s)), s.devices.topology.loss_device);
  return out;
}

}  // namespace dpt
