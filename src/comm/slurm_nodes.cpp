#include "comm/slurm_nodes.h"

#include <charconv>

namespace dpt {
namespace {

// Reads a number at the start of `text` and removes it; nullopt: there is none.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

std::string first_slurm_node(std::string_view list) {
  std::string name;
  // A name may have several ranges: "rack[1-2]node[3-4]" begins with rack1node3.
  while (!list.empty() && list.front() != ',') {
    if (list.front() != '[') {
      name += list.front();
      list.remove_prefix(1);
      continue;
    }
    const size_t end = list.find(']');
    if (end == std::string_view::npos) return "";
    const std::string_view ranges = list.substr(1, end - 1);
    const std::string_view first = ranges.substr(0, ranges.find_first_of("-,"));
    if (first.empty()) return "";
    name += first;
    list.remove_prefix(end + 1);
  }
  return name;
}

std::optional<std::vector<int>> slurm_tasks_per_node(std::string_view list) {
  constexpr size_t kMostNodes = 65536;
  std::vector<int> out;
  do {
    const std::optional<int> tasks = take_number(list);
    int nodes = 1;
    if (take(list, "(x")) {
      const std::optional<int> times = take_number(list);
      if (!times || !take(list, ")")) return std::nullopt;
      nodes = *times;
    }
    if (!tasks || nodes < 1 || out.size() + static_cast<size_t>(nodes) > kMostNodes)
      return std::nullopt;
    out.insert(out.end(), static_cast<size_t>(nodes), *tasks);
  } while (take(list, ","));
  return list.empty() ? std::optional(out) : std::nullopt;
}

}  // namespace dpt
