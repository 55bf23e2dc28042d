// A program bound to the memory of one GPU: kernels prepared, constants there. The whole batch is
// one shard (program.h, note [groups]).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/cuda/context.h"
#include "graph/program.h"

namespace dpt {

class DeviceBinding {
 public:
  struct Memory {
    std::byte *weights, *gradients, *activations, *sums;
  };
  // Prepares kernels for these parts, and uploads constants. REQUIRES: what the arguments point to
  // outlives it.
  DeviceBinding(const Program& program, const Memory& memory, cuda::DeviceContext& context,
                std::span<const Part> parts);

  // Enqueues all of a part.
  void run(Part part) {
    for (const Bound& b : bound_[static_cast<size_t>(part)]) b.kernel->run(b.args);
  }
  size_t instructions(Part part) const { return bound_[static_cast<size_t>(part)].size(); }
  // Enqueues one instruction of a part, and gives its results.
  std::span<const TensorView> run(Part part, size_t instruction);

  const Program& program() const { return program_; }
  TensorView view(ValueId v) const;  // in the GPU's memory

 private:
  struct Bound {
    std::unique_ptr<Kernel> kernel;
    std::unique_ptr<TensorView[]> views;
    KernelArgs args;
  };
  void upload_constants(cuda::DeviceContext& context);

  const Program& program_;
  Memory memory_;
  cuda::Memory constants_;
  std::vector<Bound> bound_[4];  // by Part, without `update`
};

}  // namespace dpt
