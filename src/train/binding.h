// A program bound to the memory of one shard: kernels prepared, every argument a plain pointer.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "graph/plan.h"

namespace dpt {

class Binding {
 public:
  struct Memory {
    std::byte *weights, *gradients, *activations;  // gradients: null where the program has none
  };
  // Prepares kernels for `parts` only. REQUIRES: program and memory outlive it.
  Binding(const Program& program, const Memory& memory, std::span<const Part> parts);

  // REQUIRES: the part was prepared. Thread: one at a time.
  void run(Part part) {
    for (const Bound& b : bound_[static_cast<size_t>(part)]) b.kernel->run(b.args);
  }
  // The same, but stops after the first instruction with a result that is not finite; its number in
  // the part, or -1.
  int64_t run_until_not_finite(Part part);

  // Rows [begin, end) of what instruction `i` of Part::update makes, to `out`; continued: added to
  // those of earlier samples there.
  void run_rows(size_t i, int64_t begin, int64_t end, bool continued, float* out) {
    const Bound& b = bound_[static_cast<size_t>(Part::update)][i];
    b.kernel->run_rows(b.args, begin, end, continued, reinterpret_cast<std::byte*>(out));
  }

  StepContext context;  // what the kernels see; set it before run()

  std::byte* input() const { return pointer(program_.graph.input); }
  std::byte* target() const { return pointer(program_.graph.target); }
  void set_divisor(double divisor) const;
  double loss() const { return number(program_.graph.loss); }
  double target_weight() const { return number(program_.graph.target_weight); }
  double correct() const { return number(program_.graph.correct); }
  bool has_correct() const { return program_.graph.correct != kNoValue; }
  TensorView view(ValueId v) const;
  const Program& program() const { return program_; }

 private:
  struct Bound {
    Kernel* kernel;
    KernelArgs args;
  };
  std::byte* pointer(ValueId v) const;
  double number(ValueId v) const;
  void bind(Part part);

  const Program& program_;
  Memory memory_;
  std::vector<std::byte> constants_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::unique_ptr<TensorView[]>> views_;
  std::vector<Bound> bound_[5];  // by Part
};

}  // namespace dpt
