// A number with its noun, for messages: "1 rank", "2 ranks".
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace dpt {

// If `plural` is empty, the plural is the noun with an "s".
template <std::integral N>
std::string counted(N n, std::string_view noun, std::string_view plural = "") {
  if (n == 1) return fmt::format("1 {}", noun);
  return plural.empty() ? fmt::format("{} {}s", n, noun) : fmt::format("{} {}", n, plural);
}

}  // namespace dpt
