// What the CPUs of several hosts (machines) exchange in a step of this session, and where what
// arrives is stored.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/host_sums.h"

namespace dpt {

struct Session;

class HostLayout {
 public:
  // Parts of at most so many buckets are stored at a time, in 64 MiB.
  static constexpr size_t kMostSlots = 16;
  // The same for buckets of the default size. With one part for each host they have 8 MiB: the two
  // barriers with which one is sent during the backward part, less than 0.1 ms, are little against
  // the 0.8 ms that 8 MiB take at 10 GB/s.
  static constexpr size_t kSlots = 8;

  // REQUIRES: Devices::cpus_span_hosts(), the model is compiled, and all gradients are stored.
  explicit HostLayout(const Session& session);

  const std::vector<GradientPart>& parts() const { return parts_; }
  const std::vector<PartSum>& sums() const { return sums_; }  // of parts(): completing_sums()
  const ElementOwners& owners() const { return owners_; }

  // The first buckets, which are sent during the backward part, for each the instruction of the
  // part that completes it and all before it. Not those that are
  // complete when little of the part is left; so there are none in small models, whose only bucket
  // the last gradients complete. None, too, where others need the workers or the connection
  // meanwhile: stages of a pipeline, and batch norm's sums over hosts, which would arrive behind
  // the buckets.
  const std::vector<size_t>& made_after() const { return made_after_; }

  size_t slots() const { return slots_; }
  size_t staging_bytes() const { return slots_ * slot_bytes_; }
  // Offset in Buffers::staging() of a part of another host, for the elements of bucket `bucket`
  // that this host owns. Aligned to a cache line.
  size_t staged(size_t part, size_t bucket) const {
    return bucket % slots_ * slot_bytes_ + offsets_[part];
  }

 private:
  std::vector<GradientPart> parts_;
  std::vector<PartSum> sums_;
  ElementOwners owners_;
  size_t slots_;
  std::vector<size_t> made_after_;
  std::vector<size_t> offsets_;  // [parts] in a slot
  size_t slot_bytes_ = 0;
};

}  // namespace dpt
