#include "spec/json_pieces.h"

#include <fmt/format.h>

namespace dpt {
namespace {

constexpr size_t kWidth = 100;

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

// The length of the value that begins at the front, or of a member up to the end of its value.
size_t extent(std::string_view json) {
  size_t level = 0;
  bool inside = false;  // a string
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (inside) {
      if (c == '\\') ++i;
      inside = c != '"';
    } else if (c == '"') {
      inside = true;
    } else if (c == '{' || c == '[') {
      ++level;
    } else if (c == '}' || c == ']') {
      if (level == 0) return i;
      --level;
    } else if (c == ',' && level == 0) {
      return i;
    }
  }
  return json.size();
}

// The offset of a member's value; 0 if the text is not a member.
size_t value_of_member(std::string_view part) {
  if (part[0] != '"') return 0;
  size_t end = 1;
  while (part[end] != '"') end += part[end] == '\\' ? 2 : 1;
  const bool member = end + 1 < part.size() && part[end + 1] == ':';
  return member ? part.find_first_not_of(' ', end + 2) : 0;
}

void add_lines(std::string_view json, size_t indent, size_t column, std::string& out) {
  const bool flat = json[0] != '{' && json[0] != '[';
  if (flat || column + json.size() <= kWidth) {
    out += json;
    return;
  }
  out += json[0];
  std::string_view rest = json.substr(1, json.size() - 2);
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, extent(rest));
    out += '\n' + std::string(indent + 2, ' ');
    const size_t value = value_of_member(part);
    out += part.substr(0, value);
    add_lines(part.substr(value), indent + 2, indent + 2 + value, out);
    rest.remove_prefix(part.size());
    if (rest.empty()) break;
    out += ',';
    rest.remove_prefix(rest.find_first_not_of(", "));
  }
  out += '\n' + std::string(indent, ' ') + json.back();
}

}  // namespace

std::string json_list(const std::vector<std::string>& items) { return "[" + joined(items) + "]"; }

std::string json_object(const std::vector<std::string>& members) {
  return "{" + joined(members) + "}";
}

std::string json_member(std::string_view key, const std::string& value) {
  return json_text(key) + ": " + value;
}

std::string json_lines(std::string_view json) {
  std::string out;
  add_lines(json, 0, 0, out);
  return out + "\n";
}

}  // namespace dpt
