#include "train/metrics_file.h"

#include <array>
#include <limits>
#include <string>

namespace dpt {

void read_lines(std::istream& in, const std::function<void(std::string_view, int64_t)>& line) {
  std::array<char, 1 << 14> block;
  std::string pending;
  int64_t number = 0;
  const auto add = [&](std::string_view part) {
    pending += part.substr(0, kMostRecordBytes - pending.size());
  };
  do {
    in.read(block.data(), block.size());
    std::string_view rest(block.data(), static_cast<size_t>(in.gcount()));
    for (size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
      add(rest.substr(0, end));
      line(pending, ++number);
      pending.clear();
      rest.remove_prefix(end + 1);
    }
    add(rest);
  } while (in);
  if (!pending.empty()) line(pending, number + 1);
}

std::optional<Json> record_of(std::string_view line) {
  // read_lines() drops the end of longer lines; what such a record begins with is good.
  constexpr int kDeepest = 3;
  auto out = Json::parse(
      line, {.depth = kDeepest, .python = true, .keep_start = line.size() >= kMostRecordBytes});
  if (out && !out->is_object()) out.reset();
  return out;
}

std::optional<double> number_at(const Json& record, std::string_view key) {
  const Json* const found = record.find(key);
  if (!found) return {};
  return found->is_null() ? std::numeric_limits<double>::quiet_NaN() : found->number();
}

}  // namespace dpt
