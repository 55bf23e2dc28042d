#include "session/host_layout.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "session/buffers.h"

namespace dpt {
namespace {

constexpr size_t kMostStaging = 64 * static_cast<size_t>(kMiB);

bool needs_norm(const Session& s) { return s.settings.spec.clip.max_norm || s.precision.scaler.on; }

ElementOwners owners_of(const Session& s, const std::vector<GradientPart>& parts) {
  // Norms are sums over chunks, each on one host. Otherwise pieces begin at cache lines.
  const size_t multiple = needs_norm(s) ? Buffers::kChunk : kCacheLine / sizeof(float);
  size_t element_bytes = 0;  // of one element in the parts of all hosts
  for (const GradientPart& p : parts) element_bytes += p.element_bytes();
  require(element_bytes > 0, "hosts have shards");
  // All hosts must find the same size, so each counts its own parts, too.
  const size_t fits = kMostStaging / (HostLayout::kSlots * std::max<size_t>(1, element_bytes)) /
                      multiple * multiple;
  size_t wanted = ElementOwners::kPiece;
  if (const std::optional<double>& mib = s.devices.exchange.bucket_mib)
    wanted = static_cast<size_t>(*mib * static_cast<double>(kMiB) / sizeof(float)) /
             static_cast<size_t>(s.devices.topology.hosts());
  return {s.model.layout.stored, s.devices.topology.hosts(), multiple,
          std::clamp(wanted, multiple, std::max(multiple, fits))};
}

}  // namespace

HostLayout::HostLayout(const Session& s)
    : parts_(gradient_parts(s.devices.topology, s.devices.exchange.compress.has_value())),
      sums_(completing_sums(parts_, s.devices.topology.shards)),
      owners_(owners_of(s, parts_)) {
  size_t most = 0;  // elements of this host's largest piece
  for (size_t b = 0; b < owners_.buckets(); ++b)
    most = std::max(most, owners_.piece(b, s.devices.topology.host).count());
  for (const GradientPart& p : parts_) {
    offsets_.push_back(slot_bytes_);
    if (p.host != s.devices.topology.host)
      slot_bytes_ += rounded_up(most * p.element_bytes(), kCacheLine);
  }
}

std::vector<std::vector<UpdatePiece>> update_pieces(const Session& s) {
  if (s.devices.cpus_span_hosts())
    return partition_update(HostLayout(s).owners(), s.devices.topology);
  return partition_update(s.model.programs.begin()->second, s.model.layout, s.batches.global_batch,
                          s.devices.topology);
}

}  // namespace dpt
