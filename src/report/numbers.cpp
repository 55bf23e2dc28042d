#include "report/numbers.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace dpt {

std::string number_text(double x) {
  if (!(x > 0)) return "0";
  // The thresholds are where fewer digits would round up to the next power of ten.
  if (x >= 99.95) return fmt::format("{:.0f}", x);
  if (x >= 9.995) return fmt::format("{:.1f}", x);
  const int zeros = static_cast<int>(std::max(0.0, -std::floor(std::log10(x * 1.0005))));
  return fmt::format("{:.{}f}", x, 2 + zeros);
}

std::string time_text(double ms) {
  struct Unit {
    double ms;
    const char* name;
  };
  for (const Unit u : {Unit{1e3, "s"}, Unit{1, "ms"}, Unit{1e-3, "us"}})
    if (ms >= 0.9995 * u.ms) return fmt::format("{} {}", number_text(ms / u.ms), u.name);
  return fmt::format("{} ns", number_text(ms * 1e6));
}

std::string ratio_text(double x) {
  return (x >= 0.095 && x < 1 ? fmt::format("{:.2f}", x) : number_text(x)) + "x";
}

std::string percent_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

}  // namespace dpt
