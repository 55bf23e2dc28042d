// The part of `dptrain plan` that describes a session on GPUs.
#pragma once

#include <string>

#include "session/session.h"

namespace dpt {

// Which GPUs there are, how their gradients are summed, and how much memory each needs.
std::string gpus_text(const Session& session);

}  // namespace dpt
