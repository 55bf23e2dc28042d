#include "train/metrics_file.h"

#include <array>
#include <charconv>
#include <limits>
#include <string>

#include <fmt/format.h>

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

std::optional<double> metric(std::string_view record, std::string_view key) {
  const std::string quoted = fmt::format("\"{}\"", key);
  for (size_t at = record.find(quoted); at != record.npos; at = record.find(quoted, at + 1)) {
    size_t i = record.find_first_not_of(" \t", at + quoted.size());
    if (i == record.npos || record[i] != ':') continue;  // the key is the text of a value
    i = record.find_first_not_of(" \t", i + 1);
    if (i == record.npos) return {};
    if (record.substr(i).starts_with("null")) return std::numeric_limits<double>::quiet_NaN();
    double value = 0;
    const auto end = std::from_chars(record.data() + i, record.data() + record.size(), value);
    return end.ec == std::errc() ? std::optional(value) : std::nullopt;
  }
  return {};
}

}  // namespace dpt
