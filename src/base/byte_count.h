// Numbers of bytes that users write and read: "8GiB", "512M", "1048576".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dpt {

// A number of bytes, with or without a unit: B, K, KiB, M, MiB, G, GiB, T or TiB, each 1024 times
// the one before. Empty: the text is not such a number, or it is not positive.
std::optional<double> parse_bytes(std::string_view text);

// "8.00 GiB", "61.00 MiB", "0.50 KiB".
std::string bytes_text(double bytes);

}  // namespace dpt
