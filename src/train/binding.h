// A program bound to the memory of one group of shards: kernels prepared, every argument a plain
// pointer. Shards count from the group's first.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "graph/program.h"

namespace dpt {

class Binding {
 public:
  struct Memory {
    std::byte *weights, *gradients, *activations;  // gradients: of the first shard, or null
    size_t gradient_stride = 0;                    // bytes to those of the next one
    std::byte* sums = nullptr;                     // program.h, note [cuts]; of the first shard
    size_t sum_stride = 0;
  };
  // Prepares kernels for `parts` only. REQUIRES: program and memory outlive it.
  Binding(const Program& program, const Memory& memory, std::span<const Part> parts);

  // REQUIRES: the part was prepared. Thread: one at a time.
  void run(Part part) {
    for (const Bound& b : bound_[static_cast<size_t>(part)]) run(b);
  }
  // Between two cuts of a part: piece 0 ends at the first one. What a cut sums, its caller does.
  void run(Part part, int piece) {
    for (const Bound& b : instructions(part, piece)) run(b);
  }
  // The same, but stops after the first instruction with a result that is not finite; its place in
  // program().part(part), or -1.
  int64_t run_until_not_finite(Part part, int piece);

  // Where the sums of each shard lie behind Memory::sums, and where their sum goes.
  struct Cut {
    size_t offset;
    std::span<double> sum;
  };
  Cut cut(Part part, int number) const;

  // Rows [begin, end) of what instruction `i` of Part::update makes, to `out`; continued: added to
  // those of earlier samples there.
  void run_rows(size_t i, int64_t begin, int64_t end, bool continued, float* out) {
    const Bound& b = bound_[static_cast<size_t>(Part::update)][i];
    b.kernel->run_rows(b.args, begin, end, continued, reinterpret_cast<std::byte*>(out));
  }

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
  struct Bound {
    Kernel* kernel;
    KernelArgs args;
    size_t instruction;  // of the part
    bool first_only;
  };
  std::span<const Bound> instructions(Part part, int piece) const;
  void run(const Bound& b) const {
    if (first || !b.first_only) b.kernel->run(b.args);
  }
  std::byte* pointer(ValueId v) const;
  size_t stride(ValueId v) const;
  double number(ValueId v, size_t shard) const;
  void bind(Part part);
  template <class View>
  void bind(Part part, size_t instruction, const Graph& graph, int64_t rows, View view);

  const Program& program_;
  Memory memory_;
  size_t first_ = 0;  // shard that is not empty
  std::vector<std::byte> constants_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::unique_ptr<TensorView[]>> views_;
  std::vector<Bound> bound_[5];  // by Part
  std::vector<size_t> cuts_[5];  // places in bound_
};

}  // namespace dpt
