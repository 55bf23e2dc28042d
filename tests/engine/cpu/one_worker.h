// A CPU worker alone: a session, its memory, and a team, for tests of the classes that execute a
// plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/team.h"
#include "engine/cpu/worker.h"
#include "train/run_memory.h"
#include "train/run_spec.h"

namespace dpt {

// Batches of 8, 8 and 4 samples; 10 test samples in batches of 5.
inline constexpr const char* kTinySpec = R"(
data:
  dataset: {synthetic_images: {samples: 20, test_samples: 10, shape: [1, 2, 2]}}
  transforms: [to_tensor]
  batch_size: 8
  shuffle: false
model: [flatten, {linear: 10}]
loss: cross_entropy
optimizer: {sgd: 0.5}
epochs: 1
evaluate: {batch_size: 5}
)";

struct OneWorker {
  std::unique_ptr<const Session> session;
  RunMemory memory;
  Team team;
  Buffers buffers;  // zeroed
  CpuWorker worker;

  explicit OneWorker(const std::string& yaml, std::vector<std::string> how = {}, int number = 0)
      : session(session_of(yaml, with_core(std::move(how)))),
        memory(*session),
        team(memory.team()),
        buffers(memory.buffers()),
        worker(*session, buffers, team, number) {}

  // The rows of a step of the epoch, and the step with samples in their stored order.
  struct Step {
    StepRows rows;
    std::vector<uint32_t> order;
    StepInput input;
  };
  std::unique_ptr<Step> step(int64_t batch, uint64_t number = 0) const {
    auto out = std::make_unique<Step>();
    session->batches.train->step(batch, out->rows);
    for (uint32_t i = 0; i < session->data.train_samples(); ++i) out->order.push_back(i);
    out->input = {.rows = &out->rows, .order = out->order, .number = number, .batch = batch};
    return out;
  }

 private:
  static std::vector<std::string> with_core(std::vector<std::string> how) {
    how.emplace_back("cores=1");
    return how;
  }
};

}  // namespace dpt
