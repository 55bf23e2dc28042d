#include "base/status_line.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <sys/ioctl.h>

namespace dpt {
namespace {

constexpr int kGap = 2;
constexpr int kNarrowestBar = 8, kWidestBar = 30;  // between its brackets
constexpr int kBrackets = 2;

int width_of(const StatusField& f) {
  return f.fraction ? kNarrowestBar + kBrackets : static_cast<int>(f.text.size());
}

int width_of(const std::vector<StatusField>& fields) {
  int out = 0;
  for (const StatusField& f : fields) out += width_of(f) + kGap;
  return std::max(0, out - kGap);
}

std::string bar(double fraction, int width) {
  const double part = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0;
  const auto full = static_cast<int>(std::floor(part * width));
  return fmt::format("[{:<{}}]", std::string(static_cast<size_t>(full), '='), width);
}

}  // namespace

std::string fit_fields(std::vector<StatusField> fields, int columns) {
  const int width = std::max(0, columns - 1);
  while (fields.size() > 1 && width_of(fields) > width)
    fields.erase(std::ranges::max_element(fields, {}, &StatusField::importance));
  const int left = width - width_of(fields);
  std::string out;
  for (const StatusField& f : fields) {
    if (!out.empty()) out.append(kGap, ' ');
    out += f.fraction
               ? bar(*f.fraction, kNarrowestBar + std::clamp(left, 0, kWidestBar - kNarrowestBar))
               : f.text;
  }
  return out.substr(0, static_cast<size_t>(width));
}

int terminal_columns(int fd, int otherwise) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : otherwise;
}

std::string grouped(int64_t number) {
  std::string out = fmt::format("{}", number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t at = out.size(); at > first + 3;) out.insert(at -= 3, 1, ',');
  return out;
}

std::string rounded_short(double number) {
  constexpr std::array kUnits = {"", "k", "M", "G", "T"};
  if (!std::isfinite(number)) return fmt::format("{}", number);
  size_t unit = 0;
  // 999.5, not 1000: in three digits, 999.5 is printed as 1000.
  for (; std::abs(number) >= 999.5 && unit + 1 < kUnits.size(); ++unit) number /= 1000;
  return fmt::format("{:.3g}{}", number, kUnits[unit]);
}

std::string clock_duration(double seconds) {
  constexpr int64_t kMinute = 60, kHour = 3600, kDay = 86400;
  constexpr double kMost = 1e12;
  if (!(seconds >= 0)) seconds = 0;
  const auto s = static_cast<int64_t>(std::floor(std::min(seconds, kMost)));
  if (s < kHour) return fmt::format("{}:{:02}", s / kMinute, s % kMinute);
  if (s < 100 * kHour)
    return fmt::format("{}:{:02}:{:02}", s / kHour, s % kHour / kMinute, s % kMinute);
  return fmt::format("{}d {:02}h", s / kDay, s % kDay / kHour);
}

std::string samples_per_second(double samples) {
  constexpr double kWhole = 100, kMost = 1e15;
  if (samples >= kWhole && samples < kMost)
    return fmt::format("{} samples/s", grouped(std::llround(samples)));
  return fmt::format("{:.3g} samples/s", samples);
}

}  // namespace dpt
