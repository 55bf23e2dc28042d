// Memory for activations: one arena per worker, or one per shard group if a group's activations
// must outlive a plan step. In a pipeline, each stage has a slot for each chunk that it may
// have in flight, a slot of another size for a last chunk that is not recomputed, and scratch
// memory that its chunks share. Does not own the memory.
#pragma once

#include <cstddef>
#include <vector>

#include "session/session.h"

namespace dpt {

class Arenas {
 public:
  static size_t bytes(const Session& session);
  // The part of bytes() on one device of a replica, summed over all replicas.
  static size_t bytes_on(const Session& session, int device);

  // REQUIRES: `memory` has bytes(session) bytes and is aligned to 64.
  Arenas(const Session& session, std::byte* memory);
  // The arenas of a single group whose devices have memory of their own: bytes_on() for each
  // device.
  Arenas(const Session& session, const std::vector<std::byte*>& of_devices);
  // A stage's slot for micro-batch `chunk`. last: the slot of a last chunk with its own program.
  std::byte* kept(int group, int stage, int chunk, bool last = false) const;
  std::byte* scratch(int group, int stage) const { return region(group, stage).scratch; }

 private:
  struct Region {
    std::byte* first;
    size_t stride;
    int slots;
    std::byte *last, *scratch;
  };
  void add_group(const Session& session, const std::vector<std::byte*>& of_devices);
  const Region& region(int group, int stage) const {
    return regions_[static_cast<size_t>(group)][static_cast<size_t>(stage)];
  }

  std::vector<std::vector<Region>> regions_;  // [group][stage]
};

}  // namespace dpt
