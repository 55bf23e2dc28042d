// The run directory of a run that begins or goes on.
#pragma once

#include <string>

#include "base/disk.h"
#include "checkpoint/resume.h"

namespace dpt {

// Made where it is missing, with those above it, to outlive a crash. Throws Error{failed}.
void make_run_folder(const std::string& folder, Disk& disk);

// Where a run that ends by an error says so: "exit code N", then the error, from the second line
// on.
inline std::string failure_file(const std::string& folder) { return folder + "/error.txt"; }

// Throws Error{failed} where the weights and all checkpoints that lie there at the same time (those
// that are kept and the one that is written) would not fit on its disk, as far as that can be
// known. resume: its checkpoint and those before it are there already; null: the run begins.
void check_room(const Session& session, const std::string& folder, const Resume* resume,
                Disk& disk);

// It becomes this run's: the spec, what earlier runs have left set aside, metrics.jsonl as it was
// at the checkpoint. resume: null: the run begins. Prints what was set aside. Throws Error{failed}.
// REQUIRES: the folder is there, and nothing about the run can be refused any more.
void begin_run_folder(const std::string& folder, const std::string& resolved_spec,
                      const Resume* resume, Disk& disk);

}  // namespace dpt
