// env.json of a run directory: which program ran on which machine, with how many of what.
#pragma once

#include <string>

#include "session/session.h"
#include "train/run_identity.h"

namespace dpt {

// One JSON object: version, host, job, run, started (UTC in seconds), cpu, cores, device, mode,
// ranks, hosts, devices, workers, precision, data, samples, test_samples, parameters, seed, epochs,
// steps, steps_of_epoch. resume: the argument of --resume.
std::string environment_json(const Session& session, const RunIdentity& identity,
                             const std::string& resume);

}  // namespace dpt
