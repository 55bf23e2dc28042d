// Stages whose GPUs are threads of one process, where neighbours read and write each other's
// memory.
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

#include "engine/gpu/stages.h"

namespace dpt {

class DeviceThreads final : public DeviceStages {
 public:
  // All workers; waits for the others. REQUIRES: all references outlive it.
  DeviceThreads(const Session& session, cuda::DeviceContext& context, DeviceTeam& gpus);

  std::unique_ptr<Kernel> copy(const Copy&) override { return nullptr; }
  const std::vector<StageOp>& ops() const override { return ops_of(gpus_.device()); }
  void begin(const StageOp& op) override;
  void end(const StageOp& op) override;
  void follow(const StageOp&, const DeviceBinding*) override {}
  void begin_test(int stage, int64_t batch) override;
  void end_test(int stage, int64_t batch) override;
  void follow_test(int, int64_t, const DeviceBinding*) override {}
  void end_evaluation(int64_t batches) override;
  bool gather_powers(DeviceUpdate& update) override;
  void tell() override;
  const cuda::StepState* hear() override;
  void end_step() override;
  // While something is thrown: others must know before it can be caught, or they would wait for
  // this GPU, which waits for them. Whoever catches it tells what it is.
  void give_up() noexcept override { tell_failure(gpus_); }

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
  bool sees(int) const override { return true; }
  const std::vector<StageOp>& ops_of(int device) const {
    return session_.plan.schedule[static_cast<size_t>(device)];
  }
  Shared& of(int device) const {
    return *reinterpret_cast<Shared*>(gpus_.published(gpus_.worker_of(device)));
  }
  std::unique_ptr<cuda::Event>& done(Shared& of, int stage, size_t chunk, bool backward) const;
  // The stream goes on behind that event, which the device's host records with so many more posts.
  void wait_for(int device, uint32_t posts, cuda::Event& event);
  void record(cuda::Event& event);
  void wait_for_test(int stage, int64_t batch);

  Shared shared_;
  std::vector<uint32_t> posted_;  // by each device, up to this step or evaluation
  std::optional<Present> present_;
};

}  // namespace dpt
