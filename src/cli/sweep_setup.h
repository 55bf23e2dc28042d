// What `dptrain sweep` decides before it starts runs: points, cores, metric, target and folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/folder_lock.h"
#include "cli/spec_argument.h"
#include "report/sweep_halving.h"
#include "report/sweep_manifest.h"
#include "report/sweep_run.h"
#include "report/sweep_runner.h"

namespace dpt {

struct SweepArguments {
  SpecArgument spec;
  std::string jobs = "auto", until, target, metric, out;
  int seeds = 0, random = 0, random_seed = 0, eta = 3;
  bool zip = false, halving = false, retry_failed = false, anew = false;
};

struct SweepSetup {
  Sweep sweep;
  SweepIdentity identity;
  SweepLimits limits;
  std::vector<std::string> command;  // that trains a run, see SweepRunner
  std::vector<Rung> rungs;           // empty: no successive halving
  std::string note;                  // what was chosen about cores, for the user; one line
};

// Reads the points and checks the spec of each. Throws BadSpec and Error{spec}.
SweepSetup set_up_sweep(const SweepArguments& given);

// Chooses sweep.folder, creates and locks it, and takes over the runs that are there. Prints which
// sweep is continued. Throws BadSpec if --out holds another sweep.
FolderLock open_sweep_folder(SweepSetup& setup, const SweepArguments& given);

}  // namespace dpt
