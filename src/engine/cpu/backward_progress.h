// How far a worker has run the backward part of a micro-batch. Plans for several hosts divide the
// part where buckets of gradients are complete (parallel/host_exchange.h): a step of the plan names
// the bucket until which it runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "engine/cpu/binding.h"
#include "engine/cpu/worker.h"
#include "graph/program/plan.h"

namespace dpt {

// Thread: the worker's. REQUIRES: the worker outlives it.
class BackwardProgress {
 public:
  explicit BackwardProgress(const CpuWorker& worker) : worker_(worker) {
    if (const auto& hosts = worker.session.shares.hosts)
      for (const size_t last : hosts->made_after()) ends_.push_back(last + 1);
  }

  // The instructions that this step of the plan runs for all shard groups together.
  Binding::Range range(const PlanStep& s) const {
    return {done_, s.until < 0 ? Binding::Range::kEnd : ends_[static_cast<size_t>(s.until)]};
  }
  // The same where groups run one after another and share memory: the worker's last group goes step
  // by step, and all others run the whole part in the first step.
  Binding::Range range(const PlanStep& s, int group) const {
    if (group == worker_.own.back()) return range(s);
    return begins() ? Binding::Range() : Binding::Range{Binding::Range::kEnd, Binding::Range::kEnd};
  }
  // Whether the next step is the first one of the micro-batch.
  bool begins() const { return done_ == 0; }
  // Call it when all groups have executed these steps.
  void advance(std::span<const PlanStep> steps) {
    for (const PlanStep& s : steps)
      if (s.op == PlanOp::run && s.part == Part::backward)
        done_ = s.until < 0 ? 0 : ends_[static_cast<size_t>(s.until)];
  }

 private:
  const CpuWorker& worker_;
  std::vector<size_t> ends_;  // [buckets that are sent during the part]
  size_t done_ = 0;           // instructions
};

}  // namespace dpt
