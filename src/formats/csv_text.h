#pragma once

#include <string>
#include <string_view>

namespace dpt {

// A field of CSV (RFC 4180): in quotes where it holds a comma, a quote or a line break.
std::string csv_text(std::string_view text);

}  // namespace dpt
