// GPUs that a model's stages lie on (graph/graph.h, note [stages]): the memory of their
// activations, and who waits for whom. Stages are threads of one process, which reach into each
// other's memory (stage_threads.h), or a process each, which send (stage_links.h). Of the latter
// steps are captured, if by NCCL (Session::captures_steps()): within one no host has a part.
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

class DeviceStages {
 public:
  // REQUIRES: a replica lies on several devices; all references outlive it.
  DeviceStages(const Session& session, cuda::DeviceContext& context, DeviceTeam& gpus);
  virtual ~DeviceStages() = default;
  DeviceStages(const DeviceStages&) = delete;
  DeviceStages& operator=(const DeviceStages&) = delete;

  bool has(int stage) const { return device_of(stage) == gpus_.device(); }
  int last() const { return session_.graph.stages() - 1; }
  std::vector<int> own() const;

  // Where a stage keeps what it makes of a chunk, and what is made within a part; null where
  // another process has it. last: the chunk has memory of its own, since it alone keeps its
  // activations.
  std::byte* kept(int stage, size_t chunk, bool last) const {
    return sees(stage) ? arenas_->kept(0, stage, static_cast<int>(chunk), last) : nullptr;
  }
  std::byte* scratch(int stage) const { return sees(stage) ? arenas_->scratch(0, stage) : nullptr; }
  // The kernel of a copy between stages that this GPU can't make by itself, else null.
  virtual std::unique_ptr<Kernel> copy(const Copy& way) = 0;

  // What this GPU has to do with, in its order: ops of its own stages stand between begin() and
  // end(), those of others it follows. b: the chunk's program; null: it has no rows.
  virtual const std::vector<StageOp>& ops() const = 0;
  virtual void begin(const StageOp& op) = 0;
  virtual void end(const StageOp& op) = 0;
  virtual void follow(const StageOp& op, const DeviceBinding* b) = 0;
  // The same of a batch of an evaluation of so many, whose forward parts follow each other.
  virtual void begin_test(int stage, int64_t batch) = 0;
  virtual void end_test(int stage, int64_t batch) = 0;
  virtual void follow_test(int stage, int64_t batch, const DeviceBinding* b) = 0;
  virtual void end_evaluation(int64_t batches) = 0;
  // In search of trouble, all workers, once the forward part of each stage has been enqueued where
  // it lies: what it reads of others has come from there once the stream is done.
  virtual void hand_on(const StageOp&, const DeviceBinding*) {}

  // Behind the schedule's ops and DeviceUpdate::join_pieces(): where the last stage is, the powers
  // of all GPUs, and true. Then that GPU judges, and tell() gives its state to the others; these
  // hear() it: what they are to follow, in their own memory.
  virtual bool gather_powers(DeviceUpdate& update) = 0;
  virtual void tell() = 0;
  virtual const cuda::StepState* hear() = 0;
  virtual void end_step() = 0;

  // The stream that all which waits for other GPUs has to go to; null: each may have its own.
  virtual cuda::Stream* calls() { return nullptr; }
  virtual void check() {}   // throws what went wrong between GPUs
  virtual void finish() {}  // all workers, after the last step

  // What this GPU waits for others with, if anything.
  virtual cuda::Communicator* communicator() { return nullptr; }
  // Before anything of this GPU ends: others may wait for it.
  virtual void give_up() noexcept {}

 protected:
  virtual bool sees(int stage) const = 0;
  int device_of(int stage) const { return session_.graph.stage_device[static_cast<size_t>(stage)]; }
  size_t turn_of(int64_t batch) const { return static_cast<size_t>(batch) % turns_; }
  const cuda::StepState* verdict() const {
    return reinterpret_cast<const cuda::StepState*>(verdict_.data());
  }

  const Session& session_;
  cuda::DeviceContext& context_;
  DeviceTeam& gpus_;
  cuda::Memory activations_, verdict_;
  std::optional<Arenas> arenas_;  // of all devices
  size_t turns_;
};

// All workers; waits for the others.
std::unique_ptr<DeviceStages> make_device_stages(const Session& session,
                                                 cuda::DeviceContext& context, DeviceTeam& gpus);

}  // namespace dpt
