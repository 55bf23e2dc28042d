// best.safetensors of a run directory: the weights of the best evaluation so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/disk.h"
#include "checkpoint/store.h"
#include "checkpoint/train_state.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

std::string best_weights_file(const std::string& folder);

// The step of the weights in such a file; empty: it does not exist, or says no step.
std::optional<int64_t> step_of_best_weights(const std::string& path);

// Which weights such a file has: "validation.loss 0.3406, epoch 7"; empty: it does not say.
std::optional<std::string> text_of_best_weights(const std::string& path);

// Before the first step, on rank 0: removes the file of an earlier run. resumed: the checkpoint
// that this run continues; empty: a new run. A resumed run keeps the file, or copies it from the
// directory of the run that it continues.
void begin_best_weights(const std::string& folder, const std::string& resumed);

// Writes the file. Thread: one at a time.
class BestWeights {
 public:
  // All references must outlive this object.
  BestWeights(const Session& session, std::string folder, CheckpointStore& checkpoints, Disk& disk);

  // Replaces the file atomically by the weights in the buffers, with metric, value, epoch and step
  // as metadata. If it cannot be written, warns once and lets the run continue.
  void write(const BestValue& best, const Buffers& buffers, const GradientScaler::State& scaler);

 private:
  const Session& session_;
  std::string folder_;
  CheckpointStore& checkpoints_;
  Disk& disk_;
  bool warned_ = false;
};

}  // namespace dpt
