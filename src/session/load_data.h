// Loads the data sets of a session: the training set, and the set of its evaluations.
#pragma once

#include "session/session.h"

namespace dpt {

// Sets train, test, final_test and the rows of a validation split. Reports to `d` a split that
// leaves a part empty. Throws Error{data} if data cannot be read.
void load_data(Session& session, const SessionQuery& query, Diagnostics& d);

}  // namespace dpt
