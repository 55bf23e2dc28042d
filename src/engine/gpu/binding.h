// A program bound to the memory of one GPU: its kernels are prepared and its constants uploaded. A
// GPU computes its whole batch as one shard (Note [shard groups] in program.h). If the program has
// several stages, only those of this GPU are bound.
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

class GpuBinding {
 public:
  struct BufferPointers {
    const GpuShare* share;  // which weights and gradients this GPU has
    std::byte *weights, *gradients;
    // [stages], including those of other GPUs of the process. activations: of this micro-batch,
    // kept from forward to backward; scratch: used within one part. Null: another process has the
    // stage.
    std::vector<std::byte*> activations, scratch;
    std::byte* sums;
    std::vector<int> stages = {0};  // the stages to bind
    // If set: returns the kernel of a copy between stages, or null to use the default kernel.
    std::function<std::unique_ptr<Kernel>(const Copy&)> copy = nullptr;
  };
  // Prepares the kernels of these parts and uploads constants. REQUIRES: all references and
  // pointers outlive the binding.
  GpuBinding(const Program& program, BufferPointers memory, cuda::DeviceContext& context,
             std::span<const Part> parts);

  // Prepares the kernels of these parts and stages and forgets them: for
  // DeviceContext::make_plans(). REQUIRES: a context is current.
  static void ask_for_plans(const Program& program, std::span<const int> stages,
                            std::span<const Part> parts);

  // Enqueues everything that a stage has of a part.
  void run(Part part, int stage = 0) {
    for (const Bound& b : bound_[static_cast<size_t>(part)])
      if (b.stage == stage) b.kernel->run(b.args);
  }
  // The number of bound instructions of a part. The index `which` below counts these.
  size_t instructions(Part part) const { return bound_[static_cast<size_t>(part)].size(); }
  // Enqueues one of these instructions and returns its results.
  std::span<const TensorView> run_one(Part part, size_t index);
  size_t instruction(Part part, size_t index) const {
    return bound_[static_cast<size_t>(part)][index].instruction;
  }
  int stage(Part part, size_t index) const {
    return bound_[static_cast<size_t>(part)][index].stage;
  }

  const Program& program() const { return program_; }
  TensorView view(ValueId v) const;  // in the GPU's memory

 private:
  struct Bound {
    std::unique_ptr<Kernel> kernel;
    std::unique_ptr<TensorView[]> views;
    KernelArgs args;
    size_t instruction;  // index in the program's part
    int stage;
  };
  std::unique_ptr<Kernel> kernel_of(const Instruction& i) const;
  void upload_constants(cuda::DeviceContext& context);

  const Program& program_;
  BufferPointers memory_;
  cuda::DeviceBuffer constants_;
  std::vector<Bound> bound_[4];  // [Part], without `update`
};

}  // namespace dpt
