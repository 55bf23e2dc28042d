// Commands must not write their output over a file that they read.
#pragma once

#include <string>

namespace dpt {

// Throws Error{spec} if `output` is the file `input`, also by another path or a link. Names that do
// not exist are no file.
void refuse_overwriting(const std::string& output, const std::string& input);

}  // namespace dpt
