// Whether the numbers of a table are of a size from which a net learns badly.
#pragma once

#include <string>
#include <vector>

#include "session/session.h"

namespace dpt {

// Names what is far from a mean of 0 and a deviation of 1, and the key that scales it: sentences
// without their ends. Empty: nothing is, or the spec or the first layer scales it.
std::vector<std::string> scale_warnings(const Session& session);

}  // namespace dpt
