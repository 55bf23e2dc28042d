// sweep.json: what a sweep trains and how far each run is, from which the same command continues.
#pragma once

#include <map>
#include <string>

#include "report/sweep_run.h"

namespace dpt {

// What must not change while a sweep goes on, because its table would mix different things.
struct SweepIdentity {
  std::string spec;                             // YAML of the spec without the swept values
  std::map<std::string, std::string> settings;  // of the command: "halving", "until", ...
};

// Writes FOLDER/sweep.json and FOLDER/base.yaml (the identity's spec), each as a whole. Throws
// Error{failed}.
void write_manifest(const Sweep& sweep, const SweepIdentity& identity);

// Whether the folder holds a sweep.
bool holds_sweep(const std::string& folder);

// What differs between the folder's sweep and this one, one line each; empty: this command
// continues it. More runs than there were are no difference. Throws Error{data} if the files are
// damaged.
std::vector<std::string> sweep_changes(const std::string& folder, const Sweep& sweep,
                                       const SweepIdentity& identity);

// Takes over states, notes and numbers of the runs in sweep.folder. A run that was interrupted, or
// whose directory is gone, waits. REQUIRES: sweep_changes() is empty. Throws Error{data}.
void restore_runs(Sweep& sweep, bool retry_failed);

}  // namespace dpt
