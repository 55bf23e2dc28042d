#pragma once

#include <string>
#include <string_view>

namespace dpt {

// As JSON writes a string, quotes included (RFC 8259).
std::string json_text(std::string_view text);

}  // namespace dpt
