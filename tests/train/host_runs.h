// Trains a spec on pretended hosts: each has a session, shared memory, a team and a link of its
// own, and its workers are threads of this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/gpu/team.h"
#include "engine/step_executor.h"
#include "train/trainer.h"

namespace dpt {

struct HostRun {
  // [hosts] the trained weights; the first host's are followed by the running statistics.
  std::vector<std::vector<float>> weights;
  std::vector<Outcome> outcomes;        // of each host's first worker
  std::vector<Evaluation> evaluations;  // the same, of the weights after the last step
  std::vector<std::string> errors;      // what ended each host; empty: nothing
  // For each host: payload bytes, and messages sent or received, whichever are more.
  std::vector<uint64_t> sent, received, messages;
  int64_t steps = 0;                   // of each epoch
  std::vector<ExchangeBytes> of_step;  // what each host sends in a step, by the first one's layout
  std::vector<HostTraffic> counted;    // of each host in a step, by the plan
  size_t sent_in_backward = 0;         // buckets, by the first one's layout
  std::string refused;                 // the errors of the spec on these hosts; then nothing ran
};

struct HostRunSettings {
  std::vector<int> ranks;   // of each host
  std::string folder = "";  // where the first host writes checkpoints; empty: nowhere
  std::string resume = "";  // a checkpoint, which only the first host reads
  uint64_t reorder = 0;     // messages of different tags overtake each other; 0: never
  // For `device: cuda`: open the GPU of a worker, numbered over all hosts, to train, and to
  // evaluate the trained weights. Empty: CPUs.
  OpenGpu gpus = {}, test_gpus = {};
  bool may_refuse = false;  // the spec may be one that is refused on these hosts
};

// yaml: a whole spec with `parallel: ddp`, or with a pipeline whose stages are threads.
HostRun run_on_hosts(const std::string& yaml, const HostRunSettings& settings,
                     const std::vector<std::string>& overrides = {});

}  // namespace dpt
