// Identifies a run in logs and records.
#pragma once

#include <string>

namespace dpt {

struct RunIdentity {
  // 8 hexadecimal digits, the first a letter, so that no reader parses it as a number
  std::string id;
  std::string host;  // the machine of rank 0
  std::string job;   // "job 4242 (SLURM_JOB_ID)"; empty: not started by a batch system
};

// Makes a new identity from the time, the process and the machine.
RunIdentity make_run_identity();

// The first line of a log: version, machine, job and run.
std::string first_line(const RunIdentity& identity);

}  // namespace dpt
