#pragma once

#include <string>
#include <string_view>

namespace dpt {

// The text as a JSON string, quotes included (RFC 8259). Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

// Nine significant digits, enough to identify a float; null for infinity and NaN, which JSON lacks.
std::string json_number(double x);

}  // namespace dpt
