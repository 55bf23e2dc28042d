// Warnings about the samples of a run: files and shapes that may have been misunderstood, and
// classes with too few samples to learn or to evaluate.
#pragma once

#include <string>
#include <vector>

#include "session/session.h"

namespace dpt {

// Sentences without their ends.
std::vector<std::string> data_warnings(const Session& session);

}  // namespace dpt
