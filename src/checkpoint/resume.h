// Where a run goes on: which checkpoint, whether it fits, what has changed since.
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
  std::vector<std::string> notes;  // what the user should know: checkpoints that were passed over,
                                   // keys that changed, one a line
  bool complete = false;           // nothing is left to do
};

// Which runs `auto` continues.
enum class Match {
  fits,      // every one that this run can be the rest of
  same_spec  // of these, one whose spec is the same but for how long and where it trains, and what
             // it reports: another gets no other settings unasked
};

// where: "auto", a run directory or a checkpoint. run_folder: in which `auto` looks. Empty where
// `auto` finds nothing, and `why` says so then. Throws Error{data} where there is no checkpoint
// that is whole, Error{spec} where it is of a run that this one can't be the rest of.
std::optional<Resume> find_resume(const std::string& where, const std::string& run_folder,
                                  const Session& session, const std::string& resolved_spec,
                                  std::string& why, Match match = Match::fits);

// "to resume, run the same command with --resume PATH".
std::string resume_hint(const std::string& checkpoint);

// After a failure that another start may survive: how the run is resumed from its newest
// checkpoint, or else from the one that it continued. Prints nothing where there is none. REQUIRES:
// the run has begun (RunStart::begin()), so checkpoints in its directory are its own.
void print_resume_hint(const std::string& run_folder, const std::optional<Resume>& continued);

// Whether the directory is a checkpoint, whole or not, rather than a run. Throws Error{data} where
// that can't be seen.
bool is_checkpoint(const std::string& directory);

// How an epoch's samples come to the steps and replicas of this session, in words; where they are
// the same, so are the samples, given the same seed.
std::string order_of_samples(const Session& session);

// In the place of initialise(): weights and buffers and, where workers do not keep them,
// optimizer states. Throws Error{spec} where the parameters are others.
void restore(const Session& session, const Resume& resume, const Buffers& buffers);

// All states one after another, as the flat buffers hold them, where workers do keep them.
std::vector<float> restore_own_states(const Session& session, const Resume& resume);

}  // namespace dpt
