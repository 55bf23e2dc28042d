// The launch queue of one GPU: launches that are submitted and not yet completed, what the GPU
// reads of their steps, and what it reports. The host waits only if it needs a result or the queue
// is full.
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

// With several hosts (machines): what the first worker asks of all workers, who learn it with the
// results of the launch (GpuExchange::Terms). f64 numbers, since they are part of a sum.
struct LaunchDecisions {
  double stop = 0;   // the number of a signal; 0: none
  double pause = 0;  // not 0: write a checkpoint
};

class LaunchQueue {
 public:
  static constexpr size_t kMost = 8;         // launches in the queue
  static constexpr size_t kMostSteps = 32;   // steps of a launch
  static constexpr size_t kMostNodes = 512;  // graph nodes of a launch of several steps
  // How many steps of `nodes` graph nodes are launched together: a power of 2.
  static size_t together(size_t nodes);

  // A submitted step, with its own copy of the rows.
  struct Step {
    StepInput input;
    StepRows rows;
    double divisor = 1;  // unless the targets determine it
  };

  using Decisions = LaunchDecisions;
  static constexpr size_t kDecisions = sizeof(Decisions) / sizeof(double);

  // shard: the one that this GPU computes. groups: number of parameter groups. wait_for: how the
  // host waits for an event. decides: launches have Decisions.
  LaunchQueue(cuda::DeviceContext& context, int shard, size_t groups, WaitForGpu wait_for,
              bool decides = false);

  // The GPU's copies of what steps read and write, used by all launches in turn. entry(i),
  // report(i): of step `i` of the launch. formulas: [kFormulas][groups()] the optimizer's formulas
  // of each parameter group; the first are those of the run's update number *first_update().
  static constexpr size_t kFormulas = (kMost + 1) * kMostSteps;
  const cuda::StepEntry* entry(size_t i) const { return &on_device()->entries[i]; }
  const int64_t* first_update() const { return &on_device()->first_update; }
  size_t groups() const { return groups_; }
  template <class Formula>
  const Formula* formulas() const {
    return reinterpret_cast<const Formula*>(on_device() + 1);
  }
  cuda::StepReport* report(size_t i) const {
    return reinterpret_cast<cuda::StepReport*>(reports_.data()) + i;
  }

  // [kDecisions] what this worker asks; null: launches have no decisions.
  const double* decisions() const { return reinterpret_cast<const double*>(decisions_.data()); }

  bool empty() const { return submitted_.empty(); }
  bool full() const { return submitted_.size() == kMost; }
  size_t steps() const { return steps_; }  // submitted and not completed

  // Enqueues the copy of what the GPU must know of these steps. formulas: [updates][groups()], from
  // update number first_update on. own: what this worker asks. Then enqueue the steps themselves,
  // then call enqueue_reports(). REQUIRES: not full().
  void submit(std::span<const Step> steps, int64_t first_update,
              std::span<const OptimizerStep> formulas, const Decisions& own = {});
  // Enqueues the copy of the reports to the host. decisions: [kDecisions] of all workers, on the
  // GPU; null: launches have none.
  void enqueue_reports(const double* decisions = nullptr);

  // Completes the oldest launch. Returns nothing if it is not done and `wait` is false. The result
  // is valid until the next submit(). REQUIRES: not empty().
  struct Completed {
    std::span<const Step> steps;
    const cuda::StepReport* reports;
    Decisions decisions;
  };
  std::optional<Completed> complete(bool wait);

 private:
  // The formulas follow it.
  struct alignas(16) Table {
    int64_t first_update;
    cuda::StepEntry entries[kMostSteps];
  };
  struct Launch {
    cuda::DeviceBuffer table, reports;  // pinned
    cuda::DeviceBuffer decisions;       // pinned: this worker's, then those of all; or empty
    std::unique_ptr<cuda::Event> completed;
    std::vector<Step> steps;
    size_t count = 0;
  };
  Table* on_device() const { return reinterpret_cast<Table*>(table_.data()); }

  cuda::DeviceContext& context_;
  size_t shard_, groups_;
  WaitForGpu wait_for_;
  cuda::DeviceBuffer table_, reports_, decisions_;
  std::array<Launch, kMost> launches_;
  std::deque<Launch*> submitted_;
  size_t next_ = 0, steps_ = 0;
};

}  // namespace dpt
