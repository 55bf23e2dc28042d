#include "describe/host_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/count.h"
#include "base/units.h"
#include "session/host_layout.h"

namespace dpt {
namespace {

std::string range_text(const Rows& rows) {
  return rows.count() == 0 ? "none" : fmt::format("{}..{}", rows.begin, rows.end - 1);
}

std::string sends_text(const HostLayout& layout, int host) {
  const ExchangeBytes bytes = exchange_bytes(layout.parts(), layout.owners(), host);
  const auto mib = [](uint64_t n) { return static_cast<double>(n) / kMiB; };
  return fmt::format("sends {:.2f} MiB of gradients and {:.2f} of weights a step",
                     mib(bytes.gradients), mib(bytes.weights));
}

}  // namespace

std::string hosts_text(const Session& s) {
  constexpr int kMost = 16;
  const Topology& topology = s.devices.topology;
  const HostLayout layout(s);
  std::string out =
      fmt::format("hosts: {}; gradients in {} of at most {:.2f} MiB\n", topology.hosts(),
                  counted(layout.owners().buckets(), "bucket"),
                  sizeof(float) * static_cast<double>(layout.owners().bucket(0).count()) / kMiB);
  for (int h = 0; h < std::min(topology.hosts(), kMost); ++h) {
    const auto parts = std::ranges::count(layout.parts(), h, &GradientPart::host);
    out +=
        fmt::format("  host {:<4} ranks {:<9} shards {:<9} in {:<9} {}\n", h,
                    range_text(topology.ranks_of_host(h)), range_text(topology.shards_of_host(h)),
                    counted(parts, "part"), sends_text(layout, h));
  }
  if (topology.hosts() > kMost) out += fmt::format("  and {} more\n", topology.hosts() - kMost);
  return out;
}

}  // namespace dpt
