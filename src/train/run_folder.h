// The run directory of a run that begins or continues.
#pragma once

#include <string>

#include "base/disk.h"
#include "checkpoint/resume.h"

namespace dpt {

// Creates the directory and its parents, synced to disk. Throws Error{failed}.
void make_run_folder(const std::string& folder, Disk& disk);

// The file in which a run that fails leaves its error: "exit code N", then the message from the
// second line on.
inline std::string failure_file(const std::string& folder) { return folder + "/error.txt"; }

// Throws Error{failed} if the weights and all checkpoints that exist at the same time (those kept
// and the one being written) will not fit on the folder's disk, as far as that can be known.
// resume: the checkpoint to continue from (it and older ones are on the disk already); null for a
// new run.
void check_disk_space(const Session& session, const std::string& folder, const Resume* resume,
                      Disk& disk);

// Takes over the folder for this run: writes the spec, sets checkpoints of other runs aside, and
// restores metrics.jsonl as it was at the checkpoint. resume: null for a new run. Prints what was
// set aside. Throws Error{failed}. REQUIRES: the folder exists, and every check of the run has
// passed.
void begin_run_folder(const std::string& folder, const std::string& resolved_spec,
                      const Resume* resume, Disk& disk);

}  // namespace dpt
