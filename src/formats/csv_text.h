#pragma once

#include <string>
#include <string_view>

namespace dpt {

// Quotes a CSV field (RFC 4180) if it contains a comma, a quote or a line break.
std::string csv_text(std::string_view text);

}  // namespace dpt
