#include "session/host_layout.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "session/buffers.h"
#include "session/gradient_buckets.h"
#include "session/session.h"

namespace dpt {
namespace {

constexpr size_t kMostStaging = 64 * static_cast<size_t>(kMiB);

bool needs_norm(const Session& s) { return s.settings.spec.clip.max_norm || s.precision.scaler.on; }

// Bytes of one element in the parts of all hosts. All hosts must find the same sizes, so each
// counts its own parts, too.
size_t element_bytes(const std::vector<GradientPart>& parts) {
  size_t out = 0;
  for (const GradientPart& p : parts) out += p.element_bytes();
  require(out > 0, "hosts have shards");
  return std::max<size_t>(1, out);
}

ElementOwners owners_of(const Session& s, const std::vector<GradientPart>& parts) {
  // Norms are sums over chunks, each on one host. Otherwise pieces begin at cache lines.
  const size_t multiple = needs_norm(s) ? Buffers::kChunk : kCacheLine / sizeof(float);
  const auto largest = [&](size_t slots) {
    return std::max(multiple, kMostStaging / (slots * element_bytes(parts)) / multiple * multiple);
  };
  const int hosts = s.devices.topology.hosts();
  size_t piece = std::min(ElementOwners::kPiece, largest(HostLayout::kSlots));
  if (const std::optional<double>& mib = s.devices.exchange.bucket_mib)
    piece = std::min(static_cast<size_t>(*mib * static_cast<double>(kMiB) / sizeof(float)) /
                         static_cast<size_t>(hosts),
                     largest(2));
  return {s.model.layout.stored, hosts, multiple, std::max(multiple, piece)};
}

// Of all buckets, how many fit into the memory for parts.
size_t slots_of(const ElementOwners& owners, const std::vector<GradientPart>& parts) {
  const size_t bytes =
      owners.bucket(0).count() * element_bytes(parts) / static_cast<size_t>(owners.hosts());
  return std::min(owners.buckets(), std::clamp<size_t>(kMostStaging / std::max<size_t>(1, bytes), 2,
                                                       HostLayout::kMostSlots));
}

// How many instructions of the backward part are followed by enough others that sending a bucket
// hides something: by 2 % of the part's operations. Sums of a bias are less.
size_t followed_by_work(const Program& program) {
  constexpr double kLeast = 0.02;
  const auto flops = [&](const Instruction& i) {
    return program.graph.flops(program.graph.nodes[i.node]);
  };
  double total = 0, rest = 0;
  for (const Instruction& i : program.backward) total += flops(i);
  size_t out = program.backward.size();
  while (out > 0 && rest < kLeast * total) rest += flops(program.backward[--out]);
  return out;
}

// HostLayout::made_after(), if `slots` buckets are stored at a time.
std::vector<size_t> sent_in_backward(const Session& s, const ElementOwners& owners, size_t slots) {
  const Graph& graph = s.model.graph;
  const bool sums = s.settings.spec.sync_batch_norm && graph.sync_points(Part::backward) > 0;
  if (graph.stages() > 1 || sums) return {};
  std::vector<Bucket> buckets;
  for (size_t b = 0; b < owners.buckets(); ++b) buckets.push_back(owners.bucket(b));
  const Program& program = s.model.programs.begin()->second;
  std::vector<size_t> out = made_after(program, buckets);
  const size_t last = out.back(), end = followed_by_work(program);
  std::erase_if(out, [&](size_t made) { return made == last || made >= end; });
  // One more bucket, the first that is sent afterwards, arrives before any of these is used.
  out.resize(std::min(out.size(), slots - 1));
  return out;
}

}  // namespace

HostLayout::HostLayout(const Session& s)
    : parts_(gradient_parts(s.devices.topology, s.devices.exchange.compress.has_value())),
      sums_(completing_sums(parts_, s.devices.topology.shards)),
      owners_(owners_of(s, parts_)),
      slots_(slots_of(owners_, parts_)),
      made_after_(sent_in_backward(s, owners_, slots_)) {
  size_t most = 0;  // elements of this host's largest piece
  for (size_t b = 0; b < owners_.buckets(); ++b)
    most = std::max(most, owners_.piece(b, s.devices.topology.host).count());
  for (const GradientPart& p : parts_) {
    offsets_.push_back(slot_bytes_);
    if (p.host != s.devices.topology.host)
      slot_bytes_ += rounded_up(most * p.element_bytes(), kCacheLine);
  }
}

}  // namespace dpt
