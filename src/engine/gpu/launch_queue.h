// Launches that are under way on one GPU: what the host says of their steps, and what it is told of
// them. The host waits for none of them until it wants to know, or too many are under way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/cuda/interface/context.h"
#include "engine/gpu/batch_input.h"
#include "engine/step_executor.h"
#include "graph/optimizer_step.h"

namespace dpt {

class DeviceFlights {
 public:
  static constexpr size_t kMost = 8;         // launches
  static constexpr size_t kMostSteps = 32;   // of a launch
  static constexpr size_t kMostNodes = 512;  // of a launch of several steps
  // How many steps of so many nodes each one launch takes.
  static size_t together(size_t nodes);

  // A step that has begun, with rows of its own.
  struct Step {
    StepInput input;
    StepRows rows;
    double divisor = 1;  // where the targets do not decide it
  };

  // shard: that this GPU computes. wait_for: how the host waits for an event.
  DeviceFlights(cuda::DeviceContext& context, int shard, WaitForGpu wait_for);

  // Where the GPU finds them, for all launches: what is said of step `i` of the launch, the
  // optimizer's formulas [kFormulas], of which the first is that of the run's update number
  // *first_update(); and where it reports.
  static constexpr size_t kFormulas = (kMost + 1) * kMostSteps;
  const cuda::StepEntry* entry(size_t i) const { return &on_device()->entries[i]; }
  const int64_t* first_update() const { return &on_device()->first_update; }
  template <class Formula>
  const Formula* formulas() const {
    return reinterpret_cast<const Formula*>(on_device()->formulas);
  }
  cuda::StepReport* report(size_t i) const {
    return reinterpret_cast<cuda::StepReport*>(reports_.data()) + i;
  }

  bool empty() const { return under_way_.empty(); }
  bool full() const { return under_way_.size() == kMost; }
  size_t steps() const { return steps_; }  // under way

  // Enqueues what the GPU has to know of these steps; `formulas` begin with that of update number
  // first_update. What they do is enqueued next, then land_here(). REQUIRES: not full().
  void take_off(std::span<const Step> steps, int64_t first_update,
                std::span<const OptimizerStep> formulas);
  void land_here();  // enqueues the reports' way back

  // What became of the steps of the first launch under way. Empty: not yet known. REQUIRES: not
  // empty(); valid until the next take_off().
  struct Landed {
    std::span<const Step> steps;
    const cuda::StepReport* reports;
  };
  std::optional<Landed> land(bool wait);

 private:
  struct Table {
    int64_t first_update;
    cuda::StepEntry entries[kMostSteps];
    static constexpr size_t kFormula = 96;  // bytes that hold any of them
    alignas(16) std::byte formulas[kFormulas * kFormula];
  };
  struct Launch {
    cuda::Memory table, reports;  // pinned
    std::unique_ptr<cuda::Event> landed;
    std::vector<Step> steps;
    size_t count = 0;
  };
  Table* on_device() const { return reinterpret_cast<Table*>(table_.data()); }

  cuda::DeviceContext& context_;
  size_t shard_;
  WaitForGpu wait_for_;
  cuda::Memory table_, reports_;
  std::array<Launch, kMost> launches_;
  std::deque<Launch*> under_way_;
  size_t next_ = 0, steps_ = 0;
};

}  // namespace dpt
