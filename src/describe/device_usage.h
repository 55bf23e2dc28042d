// When each device of a replica computes what, and how much memory it needs.
#pragma once

#include <string>

#include "parallel/schedule.h"
#include "session/session.h"

namespace dpt {

// When each device does what, if time is proportional to FLOPs. REQUIRES: the plan has a
// pipeline schedule.
Timing predicted_timing(const CompiledModel& model, const Plan& plan);

// The lines about devices in `dptrain plan`; empty if a replica has only one.
std::string devices_text(const Session& session);

}  // namespace dpt
