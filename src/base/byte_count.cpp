#include "base/byte_count.h"

#include <cctype>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"

namespace dpt {

std::optional<double> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number <= 0) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(rest - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (unit.empty() || unit == "B") return number;
  constexpr std::string_view kUnits = "KMGT";
  const size_t power =
      kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
  const std::string_view behind = unit.substr(1);
  if (power == kUnits.npos || !(behind.empty() || behind == "iB")) return std::nullopt;
  return number * std::pow(static_cast<double>(kKiB), static_cast<double>(power + 1));
}

std::string bytes_text(double bytes) {
  if (bytes >= static_cast<double>(kGiB)) return fmt::format("{:.2f} GiB", bytes / kGiB);
  if (bytes >= static_cast<double>(kMiB)) return fmt::format("{:.2f} MiB", bytes / kMiB);
  return fmt::format("{:.2f} KiB", bytes / kKiB);
}

}  // namespace dpt
