// A session as stable text: `dptrain plan`.
#pragma once

#include <string>

#include "session/session.h"

namespace dpt {

// refusals: also why the kernels ahead of the chosen ones were not taken.
std::string describe(const Session& session, bool refusals);

}  // namespace dpt
