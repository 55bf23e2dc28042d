// GPUs of one process that a model's stages lie on (graph/graph.h, note [stages]): the memory of
// their activations, which neighbours read and write, and who waits for whom.
//
// A later stage copies to itself what it reads of an earlier one, and the gradient back, on its own
// GPU's stream, which waits for an event of the other GPU's; so no host waits for a GPU. An event
// is waited for only once the other host has recorded it: hosts say so by posting to the team, one
// post for each thing that they told their GPU, in the order of the schedule.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "backend/cuda/context.h"
#include "train/arenas.h"
#include "train/device_team.h"
#include "train/device_update.h"
#include "train/session.h"

namespace dpt {

class DeviceStages {
 public:
  // All workers; waits for the others. REQUIRES: a replica lies on several devices, of one process;
  // all references outlive it.
  DeviceStages(const Session& session, cuda::DeviceContext& context, DeviceTeam& gpus);
  DeviceStages(const DeviceStages&) = delete;
  DeviceStages& operator=(const DeviceStages&) = delete;

  bool has(int stage) const {
    return session_.graph.stage_device[static_cast<size_t>(stage)] == gpus_.device();
  }
  int last() const { return session_.graph.stages() - 1; }
  std::vector<int> own() const;
  const std::vector<StageOp>& ops() const { return ops_of(gpus_.device()); }

  // Where a stage, own or not, keeps what it makes of a chunk, and what is made within a part.
  // last: the chunk has memory of its own, since it alone keeps its activations.
  std::byte* kept(int stage, size_t chunk, bool last) const {
    return arenas_->kept(0, stage, static_cast<int>(chunk), last);
  }
  std::byte* scratch(int stage) const { return arenas_->scratch(0, stage); }

  // Around what is enqueued for an op of the schedule.
  void begin(const StageOp& op);
  void end(const StageOp& op);
  // The same of a batch of an evaluation of so many, whose forward parts follow each other.
  void begin_test(int stage, int64_t batch);
  void end_test(int stage, int64_t batch);
  void end_evaluation(int64_t batches);

  // Behind the schedule's ops and DeviceUpdate::join_pieces(): where the last stage is, the powers
  // of all GPUs, and true. Then that GPU judges, and tell() gives its state to the others; these
  // hear() it: what they are to follow, in their own memory.
  bool gather_powers(DeviceUpdate& update);
  void tell();
  const cuda::StepState* hear();
  void end_step();

  // While something is thrown: others must know before it can be caught, or they would wait for
  // this GPU, which waits for them. Whoever catches it tells what it is.
  void tell_failure() const noexcept { tell_failure(gpus_); }

 private:
  // What others use of this GPU.
  struct Shared {
    std::byte* activations = nullptr;
    const double* powers = nullptr;
    const std::byte* verdict = nullptr;
    // Of each own stage, chunk (in an evaluation: turn), and direction.
    std::vector<std::array<std::unique_ptr<cuda::Event>, 2>> done;  // [stage * chunks + chunk]
    std::unique_ptr<cuda::Event> measured, judged;
  };
  // As long as it lives, others may use what lies here; its end waits until none does, or a while.
  class Present {
   public:
    Present(DeviceTeam& gpus, cuda::Stream& stream);
    ~Present();
    Present(const Present&) = delete;
    Present& operator=(const Present&) = delete;

   private:
    DeviceTeam& gpus_;
    cuda::Stream& stream_;
  };
  static void tell_failure(DeviceTeam& gpus) noexcept;
  const std::vector<StageOp>& ops_of(int device) const {
    return session_.plan.schedule[static_cast<size_t>(device)];
  }
  int device_of(int stage) const { return session_.graph.stage_device[static_cast<size_t>(stage)]; }
  Shared& of(int device) const {
    return *reinterpret_cast<Shared*>(gpus_.published(gpus_.worker_of(device)));
  }
  std::unique_ptr<cuda::Event>& done(Shared& of, int stage, size_t chunk, bool backward) const;
  // The stream goes on behind that event, which the device's host records with so many more posts.
  void wait_for(int device, uint32_t posts, cuda::Event& event);
  void record(cuda::Event& event);
  void wait_for_test(int stage, int64_t batch);

  const Session& session_;
  cuda::DeviceContext& context_;
  DeviceTeam& gpus_;
  Shared shared_;
  cuda::Memory activations_, verdict_;
  std::optional<Arenas> arenas_;  // of all devices
  size_t turns_;
  std::vector<uint32_t> posted_;  // by each device, up to this step or evaluation
  std::optional<Present> present_;
};

}  // namespace dpt
