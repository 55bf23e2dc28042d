// Where activations lie: one arena for each worker, or for each group of shards where a group's
// activations must outlive a stage of the plan; with stages on several devices, a slot of it for
// each chunk that a stage may have in flight, one of another size for a last chunk that is not
// checkpointed, and what chunks share.
#pragma once

#include <cstddef>
#include <vector>

#include "session/session.h"

namespace dpt {

class Arenas {
 public:
  static size_t bytes(const Session& session);
  // Of these, what lies on one device of a replica, for all replicas together.
  static size_t bytes_on(const Session& session, int device);

  // REQUIRES: `memory` holds bytes(session) and begins at a multiple of 64.
  Arenas(const Session& session, std::byte* memory);
  // Of one group, whose devices have memory of their own, bytes_on() each.
  Arenas(const Session& session, const std::vector<std::byte*>& of_devices);
  // Of a stage, for the micro-batch of that number, or for one with a program of its own, the last.
  std::byte* kept(int group, int stage, int chunk, bool last = false) const;
  std::byte* scratch(int group, int stage) const { return place(group, stage).scratch; }

 private:
  struct Place {
    std::byte* first;
    size_t stride;
    int slots;
    std::byte *last, *scratch;
  };
  void add_group(const Session& session, const std::vector<std::byte*>& of_devices);
  const Place& place(int group, int stage) const {
    return places_[static_cast<size_t>(group)][static_cast<size_t>(stage)];
  }

  std::vector<std::vector<Place>> places_;  // [group][stage]
};

}  // namespace dpt
