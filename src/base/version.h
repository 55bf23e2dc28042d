// The program's version, one line.
#pragma once

#include <string>

namespace dpt {

std::string version();  // "dptrain 0.1.0 (git 1a2b3c4, gcc 12.2.0)"

}  // namespace dpt
