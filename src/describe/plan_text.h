// The text of `dptrain plan`. It is stable, for golden files.
#pragma once

#include <string>

#include "session/session.h"

namespace dpt {

// refusals: also list why earlier entries of each kernel list were not chosen.
std::string describe(const Session& session, bool refusals);

}  // namespace dpt
