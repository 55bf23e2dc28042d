// The text of `dptrain plan`. It is stable, for golden files.
#pragma once

#include <string>

#include "session/session.h"

namespace dpt {

// verbose: also list what each pass changed, and why earlier entries of each kernel list were not
// chosen.
std::string describe(const Session& session, bool verbose);

}  // namespace dpt
