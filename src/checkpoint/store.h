// The checkpoints of a run directory: RUN/checkpoints/step-000938, each a folder that is there
// whole or not at all.
//
//   model.safetensors      weights and running statistics, as in the run directory
//   optimizer.safetensors  states, by the parameter's name and torch's for the state
//   state.json             train_state.h
//   spec.resolved.yaml     what was trained
//   manifest.txt           sizes and checksums of these
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

// Those that have such a name, whole or not, the newest first; none where there is no such folder.
// Throws Error{data} where it can't be read.
struct CheckpointName {
  int64_t step = 0;
  std::string path;
};
std::vector<CheckpointName> checkpoints_in(const std::string& folder);

// What earlier runs have left in a run directory, set aside: RUN/checkpoints.previous, and with
// numbers where there are several.
std::vector<std::string> previous_folders(const std::string& run_folder);

// Moves what another run has left, and all that is newer than where this one goes on, into a folder
// of its own, with a copy of metrics.jsonl. resumed: that checkpoint; empty: the run begins anew.
// Returns those that were moved, the newest first. Throws Error{failed}.
std::vector<CheckpointName> set_aside(Disk& disk, const std::string& run_folder,
                                      const std::string& resumed);

// Of such folders three stay: the one with those that were just moved, the one that the run goes on
// from, and of the others those that were trained furthest. Returns those that were removed.
std::vector<std::string> forget_previous(Disk& disk, const std::string& run_folder,
                                         const std::vector<CheckpointName>& moved,
                                         const std::string& resumed);

// The metrics.jsonl that a checkpoint was written beside; empty: it lies outside of a run
// directory.
std::string metrics_of(const std::string& checkpoint);

// Why the files of a checkpoint are not those that were written; empty: they are.
std::string damage(const std::string& checkpoint);

// Writes those of one run. Thread: one at a time.
class Checkpoints {
 public:
  // resumed: the checkpoint that the run goes on from; empty: it begins anew.
  Checkpoints(const Session& session, std::string run_folder, std::string resolved_spec,
              std::string resumed, Disk& disk);

  // own_states: all that are not in the buffers, one after another; empty: they are there. Where
  // the checkpoint cannot be written the run goes on, and says so once.
  void write(const TrainState& state, const Buffers& buffers, std::span<float> own_states);

  // After the last step: what was set aside goes, where this run has written its own.
  void finish();

  // Calls `write`. As long as it throws NoRoom and there are several checkpoints, removes the
  // oldest one, says that this makes room for `what` (empty: says nothing), and calls it again; so
  // the newest one stays. Returns whether any was removed.
  bool with_room(const std::string& what, const std::function<void()>& write);

  const std::string& newest() const { return newest_; }  // empty: none was written

 private:
  void write_files(const std::string& path, const TrainState& state, const Buffers& buffers,
                   std::span<float> own_states);
  void remove_old();

  const Session& session_;
  std::string run_folder_, folder_, spec_, resumed_;
  Disk& disk_;
  std::string newest_;
  bool warned_ = false, full_ = false;  // what was said of the last checkpoint
  std::future<void> removing_;          // waits in the destructor
};

}  // namespace dpt
