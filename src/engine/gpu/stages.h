// The stages of a model on several GPUs (Note [stages] in graph/graph.h): the memory of their
// activations, and the order between GPUs. Either the GPUs belong to threads of one process, which
// use each other's memory (stage_threads.h), or to a process each, which send and receive
// (stage_links.h). Steps of the second kind are captured if NCCL is used
// (Devices::captures_steps()): then no host takes part within a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "backend/cuda/interface/context.h"
#include "engine/gpu/binding.h"
#include "engine/gpu/team.h"
#include "engine/gpu/update.h"
#include "session/arenas.h"
#include "session/session.h"

namespace dpt {

class GpuStages {
 public:
  // REQUIRES: a replica has several devices; all references outlive it.
  GpuStages(const Session& session, cuda::DeviceContext& context, GpuTeam& gpus);
  virtual ~GpuStages() = default;
  GpuStages(const GpuStages&) = delete;
  GpuStages& operator=(const GpuStages&) = delete;

  bool has(int stage) const { return device_of(stage) == gpus_.device(); }
  int last() const { return session_.model.graph.stages() - 1; }
  std::vector<int> own() const;

  // A stage's memory for a chunk's activations, and its scratch within one part; null if another
  // process has the stage. last: the last chunk, which has memory of another size since only it
  // keeps its activations.
  std::byte* kept(int stage, size_t chunk, bool last) const {
    return sees(stage) ? arenas_->kept(0, stage, static_cast<int>(chunk), last) : nullptr;
  }
  std::byte* scratch(int stage) const { return sees(stage) ? arenas_->scratch(0, stage) : nullptr; }
  // The kernel of a copy between stages that needs the other GPU's cooperation, else null.
  virtual std::unique_ptr<Kernel> copy(const Copy& way) = 0;

  // The plan's steps (graph/program/plan.h) between devices; each call enqueues. wait(): for the
  // operation that the step names. record(): this GPU's operation is done. exchange(): sends or
  // receives what the operation of another device copies. b: the chunk's binding; null: it has no
  // rows.
  virtual void wait(const PlanStep& step) = 0;
  virtual void record(const PlanStep& step) = 0;
  virtual void exchange(const PlanStep& step, const GpuBinding* b) = 0;
  // The same for evaluation batches, which only have forward passes.
  virtual void begin_test(int stage, int64_t batch) = 0;
  virtual void end_test(int stage, int64_t batch) = 0;
  virtual void follow_test(int stage, int64_t batch, const GpuBinding* b) = 0;
  virtual void end_evaluation(int64_t batches) = 0;
  // Used by the non-finite check, on all workers, after a stage's forward pass is enqueued on its
  // GPU: once the stream is done, the next stage's GPU has what it reads of it.
  virtual void pass_on(const StageOp&, const GpuBinding*) {}

  // At the end of a step, after GpuUpdate::join_pieces(). gather_norm_partials() collects the
  // partial norms of all GPUs on the GPU with the last stage and returns true there. That GPU
  // judges the step and calls broadcast_decision(), which broadcasts its state. The others call
  // receive_decision(), which returns that state in their own memory.
  virtual bool gather_norm_partials(GpuUpdate& update) = 0;
  virtual void broadcast_decision() = 0;
  virtual const cuda::StepState* receive_decision() = 0;
  virtual void end_step() = 0;

  // The stream on which all calls that wait for other GPUs must be enqueued; null: any stream.
  virtual cuda::Stream* calls() { return nullptr; }
  virtual void check() {}   // throws an error of a transfer between GPUs
  virtual void finish() {}  // on all workers, after the last step

  // The communicator whose calls may wait for other GPUs; null: none.
  virtual cuda::Communicator* communicator() { return nullptr; }
  // Call it before anything of this GPU is destroyed: other GPUs may be waiting for it.
  virtual void give_up() noexcept {}

 protected:
  virtual bool sees(int stage) const = 0;
  int device_of(int stage) const {
    return session_.model.graph.stage_device[static_cast<size_t>(stage)];
  }
  size_t slot_of(int64_t batch) const { return static_cast<size_t>(batch) % slot_count_; }
  const cuda::StepState* decision() const {
    return reinterpret_cast<const cuda::StepState*>(decision_.data());
  }

  const Session& session_;
  cuda::DeviceContext& context_;
  GpuTeam& gpus_;
  cuda::DeviceBuffer activations_, decision_;
  std::optional<Arenas> arenas_;  // of all devices
  size_t slot_count_;
};

// Bytes of the decision that the last stage's GPU broadcasts.
size_t gpu_decision_bytes();

// Called on all workers; waits for the others.
std::unique_ptr<GpuStages> make_gpu_stages(const Session& session, cuda::DeviceContext& context,
                                           GpuTeam& gpus);

}  // namespace dpt
