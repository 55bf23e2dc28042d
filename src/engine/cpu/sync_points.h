// How the executor runs parts that have sync points (Note [cuts] in program.h). Included by the
// files that implement Executor.
#pragma once

#include "engine/cpu/executor.h"

namespace dpt {

template <class Run>
void Executor::run_in_pieces(int cuts, Part part, const Micro& micro, int what, Run run, int stage,
                             int chunk) {
  if (cuts == 0) return;
  for (int piece = 0; piece <= cuts; ++piece) {
    for (int g : own_)
      if (Binding* b = binding(g, micro, what, chunk)) {
        if (piece > 0)
          sum_cut(g, b->cut({.part = part, .stage = stage, .piece = piece - 1}), micro);
        run(g, *b, Binding::Piece{part, stage, piece});
      }
    if (piece < cuts) meet_at_cut();
  }
}

}  // namespace dpt
