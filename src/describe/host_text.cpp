#include "describe/host_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/count.h"
#include "base/units.h"
#include "engine/gpu/host_exchange.h"
#include "session/gradient_buckets.h"

namespace dpt {
namespace {

std::string range_text(const Rows& rows) {
  return rows.count() == 0 ? "none" : fmt::format("{}..{}", rows.begin, rows.end - 1);
}

double mib(double bytes) { return bytes / kMiB; }

std::string sends_text(uint64_t gradients, uint64_t weights) {
  return fmt::format("sends {:.2f} MiB of gradients and {:.2f} of weights a step",
                     mib(static_cast<double>(gradients)), mib(static_cast<double>(weights)));
}

// A line for each host, at most sixteen of them. text(host): what follows its ranks and shards.
template <class Text>
std::string lines_of_hosts(const Topology& topology, Text text) {
  constexpr int kMost = 16;
  std::string out;
  for (int h = 0; h < std::min(topology.hosts(), kMost); ++h)
    out += fmt::format("  host {:<4} ranks {:<9} shards {:<9} {}\n", h,
                       range_text(topology.ranks_of_host(h)),
                       range_text(topology.shards_of_host(h)), text(h));
  if (topology.hosts() > kMost) out += fmt::format("  and {} more\n", topology.hosts() - kMost);
  return out;
}

std::string cpu_hosts_text(const Session& s) {
  const Topology& topology = s.devices.topology;
  const HostLayout& layout = s.shares.hosts.value();
  std::string out =
      fmt::format("hosts: {}; gradients in {} of at most {:.2f} MiB", topology.hosts(),
                  counted(layout.owners().buckets(), "bucket"),
                  mib(sizeof(float) * static_cast<double>(layout.owners().bucket(0).count())));
  if (const size_t sent = layout.made_after().size(); sent > 0)
    out += fmt::format(", {} sent during the backward pass", sent);
  return out + '\n' + lines_of_hosts(topology, [&](int h) {
           const ExchangeBytes bytes = exchange_bytes(layout.parts(), layout.owners(), h);
           return fmt::format(
               "in {:<9} {}",
               counted(std::ranges::count(layout.parts(), h, &GradientPart::host), "part"),
               sends_text(bytes.gradients, bytes.weights));
         });
}

// What crosses from each host to the next one if NCCL sums in a ring over all GPUs.
std::string ring_text(const Session& s) {
  const Exchange& exchange = s.devices.exchange;
  const auto gpus = static_cast<uint64_t>(s.devices.topology.replicas());
  uint64_t elements = 0;
  for (const Bucket& b : s.plan.buckets[0]) elements += b.count();
  const auto passed = [&](size_t size) { return elements * size * (gpus - 1) / gpus; };
  const uint64_t gradients = passed(exchange.compress ? sizeof(uint16_t) : sizeof(float));
  return exchange.shard_states ? sends_text(gradients, passed(sizeof(float)))
                               : sends_text(2 * gradients, 0);
}

std::string gpu_hosts_text(const Session& s) {
  const Topology& topology = s.devices.topology;
  const GpuShare& share = s.shares.gpus[0];
  const auto megabytes = [](size_t bytes) { return mib(static_cast<double>(bytes)); };
  std::string out = fmt::format("hosts: {}; one NCCL communicator of {}; bytes of a ring\n",
                                topology.hosts(), counted(topology.replicas(), "GPU"));
  const std::string of_step = ring_text(s);
  out += lines_of_hosts(topology, [&](int) { return of_step; });
  return out + fmt::format(
                   "leaders of hosts: at the start {:.2f} MiB from host 0 to each other host; for "
                   "a\n  checkpoint {:.2f} MiB of optimizer states to host 0; results of "
                   "evaluations\n",
                   megabytes(GpuHostExchange::start_bytes(s, share, 1)),
                   megabytes(GpuHostExchange::checkpoint_bytes(s, share, 1)));
}

}  // namespace

std::string hosts_text(const Session& s) {
  return s.devices.on_gpu() ? gpu_hosts_text(s) : cpu_hosts_text(s);
}

}  // namespace dpt
