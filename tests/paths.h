// Where files of the tests lie.
#pragma once

#include <string>
#include <string_view>

namespace dpt {

std::string test_file(std::string_view name);    // in tests/
std::string source_file(std::string_view name);  // in the repository

}  // namespace dpt
