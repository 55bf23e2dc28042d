// A program bound to the memory of one group of shards: kernels prepared, every argument a plain
// pointer. Shards count from the group's first.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/stage_clock.h"
#include "graph/program/program.h"

namespace dpt {

class Binding {
 public:
  struct Memory {
    std::byte *weights, *gradients;  // gradients: of the first shard, or null
    // Of each stage: what is kept of this micro-batch, and what all of them share.
    std::vector<std::byte*> activations, scratch;
    size_t gradient_stride = 0;  // bytes to those of the next one
    // Where gradients of a later micro-batch are made, to be added to `gradients` at once
    // (later_bytes); null: those of the first are made in their place.
    std::byte* later = nullptr;
    std::byte* sums = nullptr;  // program.h, note [cuts]; of the first shard
    size_t sum_stride = 0;
  };
  // Some or all of a part: what one stage has of it, and between two cuts of that: piece 0 ends at
  // the first one.
  struct Piece {
    Part part;
    int stage = 0, piece = 0;
  };

  // Prepares kernels for these parts of these stages only. REQUIRES: the program and what `memory`
  // points to outlive it.
  Binding(const Program& program, Memory memory, std::span<const Part> parts,
          std::span<const int> stages);
  Binding(const Program& program, std::byte* weights, std::byte* gradients, std::byte* activations,
          std::span<const Part> parts);  // of a single stage

  // All of a part that a stage has. REQUIRES: the part was prepared. Thread: one at a time.
  void run(Part part, int stage = 0) {
    for (const Bound& b : list(part, stage).bound) run(b);
  }
  // What a cut sums, its caller does.
  void run(const Piece& piece) {
    for (const Bound& b : instructions(piece)) run(b);
  }
  int cuts(Part part, int stage) const { return static_cast<int>(list(part, stage).cuts.size()); }
  // The same, but stops after the first instruction with a result that is not finite; its place in
  // program().part(part), or -1.
  int64_t run_until_not_finite(const Piece& piece);

  // Where the sums of each shard lie behind Memory::sums, and where their sum goes.
  struct Cut {
    size_t offset;
    std::span<double> sum;
  };
  // That which ends the piece.
  Cut cut(const Piece& piece) const;

  // Rows [begin, end) of what instruction `i` of Part::update makes, to `out`; continued: added to
  // those of earlier samples there.
  void run_rows(size_t i, int64_t begin, int64_t end, bool continued, float* out) {
    const Bound& b = list(Part::update, 0).bound[i];
    b.kernel->run_rows(b.args, begin, end, continued, reinterpret_cast<std::byte*>(out));
  }

  StageClock* clock = nullptr;  // of the worker that runs it: copies between stages are exchange
  // Set these before run().
  StepContext context;  // what the kernels see
  bool first = true;    // makes the next values of buffers

  std::byte* input() const { return pointer(program_.graph.input); }
  std::byte* target() const { return pointer(program_.graph.target); }
  void set_divisor(double divisor) const;
  void set_scale(double scale) const;  // of the loss, where the graph has one
  // REQUIRES: the shard is not empty.
  double loss(size_t shard) const { return number(program_.graph.loss, shard); }
  double target_weight(size_t shard) const { return number(program_.graph.target_weight, shard); }
  double correct(size_t shard) const { return number(program_.graph.correct, shard); }
  bool has_correct() const { return program_.graph.correct != kNoValue; }
  TensorView view(ValueId v) const;                // of the whole group
  TensorView view(ValueId v, size_t shard) const;  // that shard's part
  const Program& program() const { return program_; }

 private:
  // What an instruction of a later micro-batch makes aside.
  struct Later {
    struct Sum {
      float *made, *to;
      size_t count;
    };
    std::vector<Sum> sums;
    int64_t rows = 0, columns = 0;  // of the only result, which is made some rows at a time; or 0
  };
  struct Bound {
    Kernel* kernel;
    KernelArgs args;
    size_t instruction;  // of the part
    bool first_only, copies;
    const Later* later;  // null: its results stay where they are made
  };
  struct List {
    std::vector<Bound> bound;
    std::vector<size_t> cuts;  // places in it
  };
  // Part::update is one list, whatever the stages.
  const List& list(Part part, int stage) const {
    return lists_[static_cast<size_t>(part)][static_cast<size_t>(stage)];
  }
  std::span<const Bound> instructions(const Piece& piece) const;
  void run(const Bound& b) const {
    if (!first && b.first_only) return;
    if (clock && b.copies) clock->mark(StageClock::compute);
    if (b.later)
      run_and_add(b);
    else
      b.kernel->run(b.args);
    if (clock && b.copies) clock->mark(StageClock::exchange);
  }
  void run_and_add(const Bound& b) const;
  const Later* made_aside(const Instruction& i, const GraphNode& node, std::span<TensorView> out);
  std::byte* pointer(ValueId v) const;
  size_t stride(ValueId v) const;
  double number(ValueId v, size_t shard) const;
  void fill_constants();
  void bind(Part part, std::span<const int> stages);
  template <class View>
  Bound bound(const Instruction& i, const Graph& graph, int64_t rows, View view);

  const Program& program_;
  Memory memory_;
  size_t first_ = 0;  // shard that is not empty
  std::vector<std::byte> constants_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::unique_ptr<TensorView[]>> views_;
  std::vector<std::unique_ptr<const Later>> later_;
  std::vector<List> lists_[5];  // by Part; of each stage
};

}  // namespace dpt
