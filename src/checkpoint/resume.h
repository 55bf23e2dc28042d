// Finding the checkpoint from which a run continues, and checking that it fits.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/train_state.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

struct Resume {
  std::string path;  // of the checkpoint
  TrainState state;
  std::vector<std::string> notes;  // for the user, one per line: skipped checkpoints, changed keys
  bool complete = false;           // nothing is left to train
};

// Which runs `--resume auto` continues.
enum class Match {
  fits,  // any run that this one can continue
  // Only if the spec is the same, except for how long and where it trains and what it reports.
  same_spec
};

// Finds the checkpoint to continue from.
// where: "auto", a run directory or a checkpoint. run_folder: where "auto" looks.
// Returns nothing, and sets `why`, if "auto" finds none or if Match::same_spec rejects the one
// found. Otherwise throws Error{data} if there is no intact checkpoint, and Error{spec} if this run
// cannot continue the one that wrote it.
std::optional<Resume> find_resume(const std::string& where, const std::string& run_folder,
                                  const Session& session, const std::string& resolved_spec,
                                  std::string& why, Match match = Match::fits);

// "to resume, run the same command with --resume PATH".
std::string resume_hint(const std::string& checkpoint);

// After a failure that a restart may survive: prints how to resume from the run's newest
// checkpoint, or else from the one that it continued. Prints nothing if there is none. REQUIRES:
// the run has begun (RunStart::begin()), so that the checkpoints in its directory are its own.
void print_resume_hint(const std::string& run_folder, const std::optional<Resume>& continued);

// Whether the directory is a checkpoint, intact or not, rather than a run directory. Throws
// Error{data} if that cannot be determined.
bool is_checkpoint(const std::string& directory);

// In words, how the samples of an epoch are assigned to steps and replicas. Sessions with the same
// words and seed use the same samples in every step.
std::string order_of_samples(const Devices& devices);

// Replaces initialise(): restores weights, buffers and, unless workers keep their own, optimizer
// states. Throws Error{spec} if the parameters differ.
void restore(const Session& session, const Resume& resume, const Buffers& buffers);

// For workers that keep their own states: all states, one after another, laid out like the flat
// buffers; without the averages (`ema`) if the checkpoint has none. Throws Error{spec} if the
// parameters differ.
std::vector<float> restore_own_states(const RunSettings& settings, const CompiledModel& model,
                                      const Resume& resume);

}  // namespace dpt
