// The checkpoints of a run directory: RUN/checkpoints/step-000938 and so on, each a folder that is
// either complete or absent.
//
//   model.safetensors      weights and running statistics, as in the run directory
//   optimizer.safetensors  optimizer states, named PARAMETER.STATE as in PyTorch
//   state.json             see train_state.h
//   spec.resolved.yaml     the spec that was trained
//   manifest.txt           sizes and checksums of the other files
#pragma once

#include <functional>
#include <future>
#include <span>
#include <string>
#include <vector>

#include "base/disk.h"
#include "checkpoint/train_state.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

std::string checkpoint_folder(const std::string& run_folder);

// The folders named like checkpoints, intact or not, newest first; none if `folder` does not exist.
// Throws Error{data} if it cannot be read.
struct CheckpointName {
  int64_t step = 0;
  std::string path;
};
std::vector<CheckpointName> checkpoints_in(const std::string& folder);

// The folders into which set_aside() moved checkpoints of earlier runs: RUN/checkpoints.previous,
// and further ones with numbers.
std::vector<std::string> previous_folders(const std::string& run_folder);

// Moves the checkpoints that this run does not continue into a new previous folder, with copies of
// metrics.jsonl and data.json: those newer than `resumed`, or all of them if `resumed` is elsewhere
// or empty (a new run). Returns the moved checkpoints, newest first. Throws Error{failed}.
std::vector<CheckpointName> set_aside(Disk& disk, const std::string& run_folder,
                                      const std::string& resumed);

// Keeps three previous folders: the one just filled, the one that holds `resumed`, and those
// trained furthest. Removes the others and returns their paths.
std::vector<std::string> forget_previous(Disk& disk, const std::string& run_folder,
                                         const std::vector<CheckpointName>& moved,
                                         const std::string& resumed);

// The metrics.jsonl of the run that wrote a checkpoint; empty if it is not in a run directory.
std::string metrics_of(const std::string& checkpoint);

// Which file of a checkpoint differs from what was written, and how; empty if it is intact.
std::string damage(const std::string& checkpoint);

// Writes the checkpoints of one run. Thread: one at a time.
class CheckpointStore {
 public:
  // resumed: the checkpoint that the run continues from; empty for a new run.
  CheckpointStore(const Session& session, std::string run_folder, std::string resolved_spec,
                  std::string resumed, Disk& disk);
  ~CheckpointStore() { wait_for_removal(); }
  CheckpointStore(const CheckpointStore&) = delete;
  CheckpointStore& operator=(const CheckpointStore&) = delete;

  // Writes a checkpoint and removes old ones. own_states: all optimizer states that are not in the
  // buffers, one after another; empty if the buffers hold them. If the checkpoint cannot be
  // written, or an old one removed, warns once and lets the run continue.
  void write(const TrainState& state, const Buffers& buffers, std::span<float> own_states);

  // Call after the last step: removes the previous folders if this run wrote a checkpoint.
  void finish();

  // Calls `write`. If it throws DiskFull and there are several checkpoints, removes the oldest one
  // and tries again, so the newest always stays. Prints what it removes to make room for `what`, or
  // nothing if that is empty. Returns whether any checkpoint was removed.
  bool retry_with_space(const std::string& what, const std::function<void()>& write);

  const std::string& newest() const { return newest_; }  // empty: none was written

 private:
  void write_files(const std::string& path, const TrainState& state, const Buffers& buffers,
                   std::span<float> own_states);
  void remove_old();
  void wait_for_removal() noexcept;

  const Session& session_;
  std::string run_folder_, folder_, spec_, resumed_;
  Disk& disk_;
  std::string newest_;
  bool warned_ = false, full_ = false;  // already reported for the last checkpoint
  bool warned_of_removal_ = false;
  std::future<void> removing_;
};

}  // namespace dpt
