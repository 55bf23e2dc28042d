// How the executor runs parts that have sync points (Note [sync points] in program.h). Included by
// the files that implement Executor.
#pragma once

#include "engine/cpu/executor.h"

namespace dpt {

template <class Run>
void Executor::run_in_pieces(int sync_points, Part part, const Micro& micro, int kind, Run run,
                             int stage, int chunk) {
  if (sync_points == 0) return;
  for (int piece = 0; piece <= sync_points; ++piece) {
    for (int g : own_)
      if (Binding* b = binding(g, micro, kind, chunk)) {
        if (piece > 0)
          sum_at_sync_point(g, b->sync_point({.part = part, .stage = stage, .piece = piece - 1}),
                            micro);
        run(g, *b, Binding::Piece{part, stage, piece});
      }
    if (piece < sync_points) wait_at_sync_point();
  }
}

}  // namespace dpt
