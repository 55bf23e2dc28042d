// A program bound to the memory of one GPU: kernels prepared, constants there. The whole batch is
// one shard (program.h, note [groups]). Of a program with several stages it has some.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/cuda/interface/context.h"
#include "graph/attrs.h"
#include "graph/program/program.h"
#include "session/gpu_share.h"

namespace dpt {

class DeviceBinding {
 public:
  struct Memory {
    const DeviceShare* share;  // which weights and gradients there are
    std::byte *weights, *gradients;
    // Of each stage, those of other GPUs of the process, too: what is kept of this micro-batch, and
    // what lives within a part. Null: another process has it.
    std::vector<std::byte*> activations, scratch;
    std::byte* sums;
    std::vector<int> stages = {0};  // that are bound
    // The kernel of a copy between stages, where it gives one.
    std::function<std::unique_ptr<Kernel>(const Copy&)> copy = nullptr;
  };
  // Prepares kernels for these parts, and uploads constants. REQUIRES: what the arguments point to
  // outlives it.
  DeviceBinding(const Program& program, Memory memory, cuda::DeviceContext& context,
                std::span<const Part> parts);

  // Prepares the kernels of these parts and stages and forgets them: for
  // DeviceContext::make_plans(). REQUIRES: a context is current.
  static void ask_for_plans(const Program& program, std::span<const int> stages,
                            std::span<const Part> parts);

  // Enqueues all of a part that a stage has.
  void run(Part part, int stage = 0) {
    for (const Bound& b : bound_[static_cast<size_t>(part)])
      if (b.stage == stage) b.kernel->run(b.args);
  }
  // Instructions of a part, as the program numbers them, that it has.
  size_t instructions(Part part) const { return bound_[static_cast<size_t>(part)].size(); }
  // Enqueues one of these, and gives its results.
  std::span<const TensorView> run_one(Part part, size_t which);
  size_t instruction(Part part, size_t which) const {
    return bound_[static_cast<size_t>(part)][which].instruction;
  }
  int stage(Part part, size_t which) const {
    return bound_[static_cast<size_t>(part)][which].stage;
  }

  const Program& program() const { return program_; }
  TensorView view(ValueId v) const;  // in the GPU's memory

 private:
  struct Bound {
    std::unique_ptr<Kernel> kernel;
    std::unique_ptr<TensorView[]> views;
    KernelArgs args;
    size_t instruction;  // of the program's part
    int stage;
  };
  std::unique_ptr<Kernel> kernel_of(const Instruction& i) const;
  void upload_constants(cuda::DeviceContext& context);

  const Program& program_;
  Memory memory_;
  cuda::Memory constants_;
  std::vector<Bound> bound_[4];  // by Part, without `update`
};

}  // namespace dpt
