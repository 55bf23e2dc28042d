// When each device of a replica computes what, and what it stores.
#pragma once

#include <string>

#include "parallel/schedule.h"
#include "session/session.h"

namespace dpt {

// When each device does what, if time goes by FLOPs. REQUIRES: the session has a schedule.
Timing predicted_timing(const Session& session);

// The lines that `dptrain plan` prints of devices; empty where a replica has one.
std::string devices_text(const Session& session);

}  // namespace dpt
