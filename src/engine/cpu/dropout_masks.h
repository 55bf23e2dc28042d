// Dropout masks in the order in which PyTorch draws them: layer by layer, each mask for the whole
// batch and in the order of PyTorch's memory layout.
#pragma once

#include <cstddef>
#include <vector>

#include "base/generator.h"
#include "engine/shard_samples.h"
#include "session/arenas.h"
#include "session/session.h"

namespace dpt {

// Thread: the first worker's. REQUIRES: all references outlive it.
class DropoutMasks {
 public:
  // generator: PyTorch's. arenas: where the shard groups' masks lie.
  DropoutMasks(const Session& session, const Arenas& arenas, Generator& generator)
      : session_(session), arenas_(arenas), generator_(generator) {}

  // Draws all masks of micro-batch number `chunk` into the activations of all shard groups.
  void draw(const MicroBatch& micro, int chunk);

 private:
  const Session& session_;
  const Arenas& arenas_;
  Generator& generator_;
  std::vector<float*> rows_;  // [samples] of the mask being drawn
};

}  // namespace dpt
