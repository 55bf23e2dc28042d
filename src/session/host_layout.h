// What the CPUs of several hosts (machines) exchange in a step of this session, and where what
// arrives is stored.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/host_sums.h"
#include "session/session.h"
#include "session/update_partition.h"

namespace dpt {

class HostLayout {
 public:
  // Parts of two buckets are stored at a time: those of one arrive while others are summed.
  static constexpr size_t kSlots = 2;

  // REQUIRES: Devices::cpus_span_hosts(), the model's layout is set, and all gradients are stored.
  explicit HostLayout(const Session& session);

  const std::vector<GradientPart>& parts() const { return parts_; }
  const std::vector<PartSum>& sums() const { return sums_; }  // of parts(): completing_sums()
  const ElementOwners& owners() const { return owners_; }

  size_t staging_bytes() const { return kSlots * slot_bytes_; }
  // Offset in Buffers::staging() of a part of another host, for the elements of bucket `bucket`
  // that this host owns. Aligned to a cache line.
  size_t staged(size_t part, size_t bucket) const {
    return bucket % kSlots * slot_bytes_ + offsets_[part];
  }

 private:
  std::vector<GradientPart> parts_;
  std::vector<PartSum> sums_;
  ElementOwners owners_;
  std::vector<size_t> offsets_;  // [parts] in a slot
  size_t slot_bytes_ = 0;
};

// The parameters that each worker updates: see partition_update().
std::vector<std::vector<UpdatePiece>> update_pieces(const Session& session);

}  // namespace dpt
