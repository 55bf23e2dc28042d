// What tells a run from all others, for logs and records.
#pragma once

#include <string>

namespace dpt {

struct RunIdentity {
  std::string id;    // 8 hexadecimal digits, the first a letter: readers take it for no number
  std::string host;  // the machine of rank 0
  std::string job;   // "job 4242 (SLURM_JOB_ID)"; empty: no batch system started the process
};

// A new one at each call: of the time, the process and the machine.
RunIdentity make_run_identity();

// The first line of a log: version, machine, job and run.
std::string first_line(const RunIdentity& identity);

}  // namespace dpt
