// How the executor runs parts that are cut: program.h, note [cuts]. For executor.cpp and
// evaluate.cpp.
#pragma once

#include "train/executor.h"

namespace dpt {

template <class Run>
void Executor::run_in_pieces(int cuts, Part part, const Micro& micro, int what, Run run) {
  if (cuts == 0) return;
  for (int piece = 0; piece <= cuts; ++piece) {
    for (int g : own_)
      if (Binding* b = binding(g, micro, what)) {
        if (piece > 0) sum_cut(g, b->cut(part, piece - 1), micro);
        run(g, *b, piece);
      }
    if (piece == cuts || !meets_at_cuts_) continue;
    if (clock_) clock_->mark(StageClock::compute);
    meet();
  }
}

}  // namespace dpt
