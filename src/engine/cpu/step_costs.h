// How long the pieces of a training step take on this machine's cores, measured without training:
// each worker's kernels run on its own shards, as often as needed, on as many cores at once as a
// run would use. report/step_time.h composes the step from them. With several hosts, those of this
// host: nothing is sent.
#pragma once

#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

// One kernel of a worker's programs, over all its shards and micro-batches of a step.
struct KernelCost {
  std::string layer;
  std::string_view op, kernel;
  Part part = Part::forward;
  double seconds = 0;
  double flops = 0;  // arithmetic operations
};

// Seconds per step of the slowest worker; medians over repeated steps.
struct StepCosts {
  int at_once = 1;                        // workers that computed at the same time
  double load = 0;                        // making batches from samples in memory
  std::vector<double> forward, backward;  // [stages], over all micro-batches
  double loss = 0;                        // with the prologue
  double compress = 0;                    // halves of gradients, if the plan has them
  double sum_own = 0;    // with several hosts: the sums that a host sends, of all buckets
  double sum_parts = 0;  // with several hosts and a norm: over what all hosts have sent
  double norm = 0;       // norms before the update, with the sum over shards; if the plan has them
  double update = 0;     // the sum over shards, unless it is made before, and the optimizer
  double whole = 0;      // load to backward: less than their sum if different workers are slowest
  double barrier = 0;    // one barrier of `at_once` workers; 0: one worker
  std::vector<KernelCost> kernels;  // of the first worker, slowest first

  double all_forward() const { return std::accumulate(forward.begin(), forward.end(), 0.0); }
  double all_backward() const { return std::accumulate(backward.begin(), backward.end(), 0.0); }
  double after_backward() const { return compress + sum_own + sum_parts + norm + update; }
};

// Uses as many threads as there are `cores`, each pinned to one, but no more than the run has
// workers on this host. `buffers` hold initial weights, and are overwritten. Samples in files
// (images) are decoded by the workers, whereas a run reads them ahead. REQUIRES: a session on CPUs
// whose data is loaded; at least one core.
StepCosts measure_step_costs(const Session& session, const Buffers& buffers,
                             std::span<const int> cores);

}  // namespace dpt
