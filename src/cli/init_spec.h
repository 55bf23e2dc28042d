// The spec that `dptrain init` writes for a data set.
#pragma once

#include <string>

#include "data/guess/guess.h"

namespace dpt {

// Whether the spec evaluates on a part of the training set: there is no test set, and there are
// enough samples.
bool splits_off_validation(const DataGuess& guess);

// Whether it evaluates on a validation set, be that such a part or a folder of its own.
bool validates(const DataGuess& guess);

// A commented spec that trains a small net on the data. folder: that of the spec, from which its
// paths start. schema: the path or name of the JSON Schema for the first line. Throws Error{spec}
// if no net of those that it knows fits the targets.
std::string init_spec(const DataGuess& guess, const std::string& folder, const std::string& schema);

}  // namespace dpt
