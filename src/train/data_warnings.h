// Warnings about the samples of a run: files that may have been misunderstood, and classes with too
// few samples to learn or to evaluate.
#pragma once

#include <string>
#include <vector>

#include "session/session_data.h"

namespace dpt {

// Sentences without their ends.
std::vector<std::string> data_warnings(const SessionData& data);

}  // namespace dpt
