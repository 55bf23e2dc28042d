#pragma once

#include <string>
#include <string_view>

namespace dpt {

// As JSON writes a string, quotes included (RFC 8259).
std::string json_text(std::string_view text);

// With nine digits, which tell a float; null where it is no number, which JSON has not.
std::string json_number(double x);

}  // namespace dpt
