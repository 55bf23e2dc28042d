// Memory for activations: one arena per worker, or one per shard group if a group's activations
// must outlive a plan step. In a pipeline, each stage has a slot for each chunk that it may
// have in flight, a slot of another size for a last chunk that is not recomputed, and scratch
// memory that its chunks share. Does not own the memory.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/topology.h"

namespace dpt {

struct Session;

// Where arenas and their slots lie, as offsets.
struct ArenaLayout {
  // In the arena of a group, on the stage's device: slots for chunks, and one for a last chunk.
  struct Stage {
    size_t first, stride, slots, last;
  };
  std::vector<Stage> stages;
  std::vector<size_t> scratch;  // [devices of a replica] of what the device's stages share
  std::vector<size_t> on;       // [devices of a replica] bytes of a group's arena
  size_t group_bytes = 0;       // of a group's arenas on all devices
  bool by_group = false;        // one arena per shard group; false: one per worker
  Rows groups;                  // shard groups of this host
  size_t count = 0;             // arenas of this host
  size_t bytes = 0;             // of all of them

  ArenaLayout() = default;
  explicit ArenaLayout(const Session& session);  // REQUIRES: the session's plan is made
  // Bytes of all arenas on one device of a replica, summed over all replicas.
  size_t bytes_on(int device) const { return count * on[static_cast<size_t>(device)]; }
};

class Arenas {
 public:
  // REQUIRES: `memory` has ArenaLayout::bytes bytes and is aligned to 64.
  Arenas(const Session& session, std::byte* memory);
  // The arenas of a single group whose devices have memory of their own: ArenaLayout::on[device]
  // bytes each.
  Arenas(const Session& session, const std::vector<std::byte*>& of_devices) {
    add_group(session, of_devices);
  }
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
