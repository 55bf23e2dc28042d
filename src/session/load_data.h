// Loads the data sets of a session: the training set, and the set of its evaluations.
#pragma once

#include "session/run_settings.h"
#include "session/session_data.h"
#include "session/session_query.h"

namespace dpt {

// Reports to `d` a split that leaves a part empty and transforms that do not fit the data. Throws
// Error{data} if data cannot be read, or if the evaluated set does not fit the training set.
SessionData load_data(const RunSettings& settings, const SessionQuery& query, Diagnostics& d);

}  // namespace dpt
