// A program bound to the memory of one shard group: its kernels are prepared and their arguments
// are plain pointers. Shard indices count from the group's first shard.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "engine/cpu/memory_watch.h"
#include "engine/plan_step_clock.h"
#include "graph/program/program.h"
#include "session/update_partition.h"

namespace dpt {

class Binding {
 public:
  struct BufferPointers {
    std::byte *weights, *gradients;  // gradients: of the group's first shard; may be null
    // [stages]. activations: of this micro-batch, kept from forward to backward; scratch: shared by
    // all micro-batches.
    std::vector<std::byte*> activations, scratch;
    size_t gradient_stride = 0;  // bytes from one shard's gradients to the next
    // For gradient accumulation: where a later micro-batch's gradients are computed before they are
    // added to `gradients`; later_bytes() long. Null: gradients are written in place.
    std::byte* later = nullptr;
    std::byte* sums = nullptr;  // of the first shard; see Note [sync points] in program.h
    size_t sum_stride = 0;
  };
  // Instructions [begin, end) of a part.
  struct Range {
    static constexpr size_t kEnd = std::numeric_limits<size_t>::max();  // of all parts
    size_t begin = 0, end = kEnd;
    bool is_whole() const { return begin == 0 && end == kEnd; }
  };
  // A piece of a part on one stage. Sync points divide a stage's instructions into pieces: piece 0
  // ends at the first sync point. See Note [sync points] in program.h. range: only these.
  struct Piece {
    Part part;
    int stage = 0, piece = 0;
    Range range = {};
  };

  // Prepares the kernels of these parts and stages only, and of Part::update those whose gradients
  // the pieces of `share` need. REQUIRES: the program, and the memory that `memory` points to,
  // outlive the binding.
  Binding(const Program& program, BufferPointers memory, std::span<const Part> parts,
          std::span<const int> stages, std::span<const UpdatePiece> share = {});
  Binding(const Program& program, std::byte* weights, std::byte* gradients, std::byte* activations,
          std::span<const Part> parts);  // a program with one stage

  // Runs everything a stage has of a part. REQUIRES: the part was prepared. Thread: one at a time.
  void run(Part part, int stage = 0) {
    for (const Bound& b : list(part, stage).bound) run(b);
  }
  // The same for measurements, without the sums at sync points: calls f(index of the instruction in
  // program().part(part), a function that runs it) for each instruction.
  template <class F>
  void run_each(Part part, int stage, F f) {
    for (int piece = 0; piece <= sync_points(part, stage); ++piece)
      for (const Bound& b : instructions({part, stage, piece})) f(b.instruction, [&] { run(b); });
  }
  // Runs one piece. The caller computes the sums at the sync point behind it.
  void run(const Piece& piece) {
    for (const Bound& b : instructions(piece)) run(b);
  }
  int sync_points(Part part, int stage) const {
    return static_cast<int>(list(part, stage).sync_points.size());
  }
  // Runs a piece up to the first instruction with a non-finite result. Returns that instruction's
  // index in program().part(part), or -1.
  int64_t run_until_not_finite(const Piece& piece);

  // A sync point: the offset of each shard's sums in BufferPointers::sums, and where their total is
  // stored.
  struct SyncPoint {
    size_t offset;
    std::span<double> sum;
  };
  // The sync point at which `piece` ends.
  SyncPoint sync_point(const Piece& piece) const;

  // Computes rows [begin, end) of the gradient that instruction `i` of Part::update makes, and
  // writes them to `out`. continued: adds to the rows that are already there. REQUIRES: a piece of
  // the share has `i`. See Note [fused gradients].
  void run_rows(size_t i, int64_t begin, int64_t end, bool continued, float* out) {
    const Bound& b = instructions({.part = Part::update, .range = {i, i + 1}}).front();
    if (memory_watch) memory_watch->rows(b.args, i, begin, end);
    b.kernel->run_rows(b.args, begin, end, continued, reinterpret_cast<std::byte*>(out));
  }

  // The worker's clock; null: not measured. Copies between stages count as exchange.
  PlanStepClock* clock = nullptr;
  StepContext context;  // what kernels read; set it before run()
  bool first = true;    // run instructions that update running statistics; set it before run()

  std::byte* input() const { return pointer(program_.graph.input); }
  std::byte* target() const { return pointer(program_.graph.target); }
  void set_divisor(double divisor) const;
  void set_scale(double scale) const;  // the loss scale; ignored if the graph has none
  // Results of one shard after a run. REQUIRES: the shard is not empty.
  double loss(size_t shard) const { return number(program_.graph.loss, shard); }
  double target_weight(size_t shard) const { return number(program_.graph.target_weight, shard); }
  double correct(size_t shard) const { return number(program_.graph.correct, shard); }
  bool has_correct() const { return program_.graph.correct != kNoValue; }
  TensorView view(ValueId v) const;                // of the whole shard group
  TensorView view(ValueId v, size_t shard) const;  // that shard's part
  const Program& program() const { return program_; }

 private:
  // How run_and_add() adds the gradients of one instruction of a later micro-batch.
  struct Later {
    struct Sum {
      float *made, *to;
      size_t count;
    };
    std::vector<Sum> sums;
    // The shape of the only result, if it is computed some rows at a time; else 0.
    int64_t rows = 0, columns = 0;
  };
  struct Bound {
    Kernel* kernel;
    KernelArgs args;
    size_t instruction;       // index in the part
    bool first_only, copies;  // first_only: updates running statistics; copies: between stages
    const Later* later;       // null: results are written in place
  };
  struct List {
    std::vector<Bound> bound;
    std::vector<size_t> sync_points;  // indices into `bound`
  };
  // Part::update has one list, under stage 0, whatever the number of stages.
  const List& list(Part part, int stage) const {
    return lists_[static_cast<size_t>(part)][static_cast<size_t>(stage)];
  }
  std::span<const Bound> instructions(const Piece& piece) const;
  void run(const Bound& b) const {
    if (!first && b.first_only) return;
    if (memory_watch) memory_watch->kernel(b.args);
    if (clock && b.copies) clock->mark(PlanStepClock::compute);
    if (b.later)
      run_and_add(b);
    else
      b.kernel->run(b.args);
    if (clock && b.copies) clock->mark(PlanStepClock::exchange);
  }
  void run_and_add(const Bound& b) const;
  const Later* made_aside(const Instruction& i, const GraphNode& node, std::span<TensorView> out);
  std::byte* pointer(ValueId v) const;
  size_t stride(ValueId v) const;
  double number(ValueId v, size_t shard) const;
  void fill_constants();
  template <class Wanted>
  void bind(Part part, Wanted wanted);
  template <class View>
  Bound bound(const Instruction& i, const Graph& graph, int64_t rows, View view);

  const Program& program_;
  BufferPointers memory_;
  size_t first_ = 0;  // the first shard with samples
  std::vector<std::byte> constants_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::unique_ptr<TensorView[]>> views_;
  std::vector<std::unique_ptr<const Later>> later_;
  std::vector<List> lists_[5];  // [Part][stage]
};

}  // namespace dpt
