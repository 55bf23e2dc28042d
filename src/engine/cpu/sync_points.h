// Runs parts of programs that have sync points (Note [sync points] in program.h): piece by piece,
// with the sums over shards between two pieces.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/cpu/binding_table.h"
#include "engine/cpu/worker.h"

namespace dpt {

// Thread: the worker's. REQUIRES: the worker and its bindings outlive it.
class SyncPoints {
 public:
  SyncPoints(CpuWorker& worker, const BindingTable& bindings);

  // A stage of a part that is run for a micro-batch.
  struct Run {
    Part part = Part::forward;
    const MicroBatch& micro;
    ProgramKind kind = ProgramKind::train;
    int stage = 0;
    size_t chunk = 0;  // number of the micro-batch
    Binding::Range range = {};
  };
  // Calls f(group, binding, piece) for each piece of a part with `count` sync points and each of
  // the worker's shard groups, and sums between pieces. Does nothing if `count` is 0. With a range
  // of instructions: for the pieces, and the sums, that have some of these.
  template <class F>
  void each_piece(int count, const Run& run, F f) {
    if (count == 0) return;
    const auto [first, last] = pieces(count, run);
    for (int piece = first; piece <= last; ++piece) {
      for (const int g : worker_.own)
        if (Binding* b = bindings_.find(g, run.micro, run.kind, run.chunk)) {
          if (piece > first)
            sum(g, b->sync_point({.part = run.part, .stage = run.stage, .piece = piece - 1}),
                run.micro);
          f(g, *b, Binding::Piece{run.part, run.stage, piece, run.range});
        }
      if (piece < last) wait({.run = &run, .piece = piece});
    }
  }
  // Runs all pieces.
  void run(int count, const Run& run) {
    each_piece(count, run, [](int, Binding& b, const Binding::Piece& piece) { b.run(piece); });
  }
  // Runs one stage for all of the worker's shard groups, with or without sync points.
  void run_stage(const Run& run);

  // Whether workers wait for each other: several workers own the shards of a sum.
  bool waits() const { return waits_; }
  void wait();  // a barrier of the workers that sum together, if waits()

 private:
  // The sync point at the end of a piece of a stage.
  struct At {
    const Run* run;
    int piece;
  };
  void wait(const At& at);
  std::pair<int, int> pieces(int count, const Run& run) const;  // the first and the last one
  std::vector<int> partners() const;
  void sum(int group, const Binding::SyncPoint& sync_point, const MicroBatch& micro);

  CpuWorker& worker_;
  const BindingTable& bindings_;
  bool waits_;
  std::vector<int> partners_;  // workers that wait together; empty: all workers
  std::vector<double> sums_;   // [shards of a replica] scratch of sum()
  std::vector<double*> parts_;
};

}  // namespace dpt
