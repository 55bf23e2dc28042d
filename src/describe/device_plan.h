// What `dptrain plan` prints of a session on GPUs.
#pragma once

#include <string>

#include "session/session.h"

namespace dpt {

// Which they are, how their gradients are summed, what each holds.
std::string gpus_text(const Session& session);

// Who does what when, where there are several; one does as its Plan says.
std::string steps_of_gpus_text(const Session& session);

}  // namespace dpt
