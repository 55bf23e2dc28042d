// Stages whose GPUs belong to threads of one process: neighbors read and write each other's memory.
//
// The later of two stages copies what it reads from the earlier one, and copies the gradient back,
// on its own GPU's stream, which first waits for an event of the other GPU; no host waits for a
// GPU. A stream may wait for an event only after the other host has recorded it. For this, each
// host posts to the team once for each event that it records, in the order of the schedule.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/gpu/stages.h"

namespace dpt {

class StageThreads final : public GpuStages {
 public:
  // Called on all workers; waits for the others. REQUIRES: all references outlive it.
  StageThreads(const Session& session, cuda::DeviceContext& context, GpuTeam& gpus);

  std::unique_ptr<Kernel> copy(const Copy&) override { return nullptr; }
  void wait(const PlanStep& step) override;
  void record(const PlanStep& step) override;
  void exchange(const PlanStep&, const GpuBinding*) override {}
  void begin_test(int stage, int64_t batch) override;
  void end_test(int stage, int64_t batch) override;
  void follow_test(int, int64_t, const GpuBinding*) override {}
  void end_evaluation(int64_t batches) override;
  bool gather_norm_partials(GpuUpdate& update) override;
  void broadcast_decision() override;
  const cuda::StepState* receive_decision() override;
  void end_step() override;
  // If an exception is in flight: breaks the team up before the exception can be caught.
  // Otherwise the others would wait for this GPU, which waits for them. The catcher reports the
  // error.
  void give_up() noexcept override { break_up_team(gpus_); }

 private:
  // What other workers read of this GPU: addresses and events.
  struct Shared {
    std::byte* activations = nullptr;
    const double* norm_partials = nullptr;
    const std::byte* decision = nullptr;
    // done: [stage * chunks + chunk][backward]. Events behind each forward and backward pass of the
    // own stages; in an evaluation `chunk` is the slot.
    std::vector<std::array<std::unique_ptr<cuda::Event>, 2>> done;
    std::unique_ptr<cuda::Event> measured, decided;
  };
  // While it lives, other workers may use this GPU's memory and events. Its destructor waits, for a
  // limited time, until no worker does.
  class PeerAccess {
   public:
    PeerAccess(GpuTeam& gpus, cuda::Stream& stream);
    ~PeerAccess();
    PeerAccess(const PeerAccess&) = delete;
    PeerAccess& operator=(const PeerAccess&) = delete;

   private:
    GpuTeam& gpus_;
    cuda::Stream& stream_;
  };
  static void break_up_team(GpuTeam& gpus) noexcept;
  bool sees(int) const override { return true; }
  const std::vector<StageOp>& ops_of(int device) const {
    return session_.plan.schedule[static_cast<size_t>(device)];
  }
  Shared& of(int device) const {
    return *reinterpret_cast<Shared*>(gpus_.published(gpus_.worker_of(device)));
  }
  std::unique_ptr<cuda::Event>& done(Shared& of, int stage, size_t chunk, bool backward) const;
  // Makes the stream wait for an event that the device's host records with its `posts`-th post of
  // this step or evaluation.
  void wait_for(int device, uint32_t posts, cuda::Event& event);
  void record_event(cuda::Event& event);
  void wait_for_test(int stage, int64_t batch);

  Shared shared_;
  std::vector<uint32_t> posted_;  // [devices] posts of each before this step or evaluation
  std::optional<PeerAccess> peer_access_;
};

}  // namespace dpt
