// Writes trees as YAML text.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/utf8.h"
#include "spec/node.h"

namespace dpt {
namespace {

constexpr size_t kShortList = 80;

bool word(std::string_view s) {
  const auto inside = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  const bool null = s == "null" || s == "Null" || s == "NULL";
  return !s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) && !null &&
         std::ranges::all_of(s, inside);
}

std::string quote(std::string_view s) {
  std::string out = "\"";
  while (!s.empty()) {
    const std::string_view character = s.substr(0, std::max<size_t>(1, utf8_length(s)));
    if (character == "\"" || character == "\\")
      (out += '\\') += character;
    else if (character == "\n")
      out += "\\n";
    else if (character == "\t")
      out += "\\t";
    else if (is_control(character))  // the second byte of a C1 character is its code
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(character.back()));
    else
      out += character;
    s.remove_prefix(character.size());
  }
  return out + '"';
}

std::string scalar(const Node& n) {
  if (n.kind == Node::Kind::null) return "null";
  return n.quoted ? quote(n.text) : n.text;
}

bool plain(const Node& n) { return n.kind == Node::Kind::null || n.kind == Node::Kind::scalar; }

// Whether a node may appear unchanged between [ and ]: quoted text, or plain text such as cpu:0.
bool safe_in_flow(const Node& n) {
  if (!plain(n) || n.quoted) return plain(n);
  if (n.text.find_first_of(",[]{}#\"'") != n.text.npos || n.text.ends_with(':')) return false;
  for (size_t i = n.text.find(':'); i != n.text.npos; i = n.text.find(':', i + 1))
    if (!std::isalnum(static_cast<unsigned char>(n.text[i + 1]))) return false;
  return true;
}

// Flow style, as "[1, 2]" and "{}"; empty if the node needs lines of its own.
std::string in_flow(const Node& n) {
  if (plain(n)) return scalar(n);
  if (n.kind == Node::Kind::map) return n.entries.empty() ? "{}" : "";
  if (!std::ranges::all_of(n.items, safe_in_flow)) return "";
  std::string out = "[";
  for (const Node& i : n.items) out += (out.size() > 1 ? ", " : "") + scalar(i);
  return out.size() > kShortList ? "" : out + "]";
}

// `open`: the first line has already begun (after "- "), so it needs no indentation.
void write(const Node& n, size_t indent, bool open, std::string& out) {
  const auto begin = [&] {
    if (!open) out.append(indent, ' ');
    open = false;
  };
  if (const std::string flow = in_flow(n); !flow.empty()) {
    begin();
    out += flow + "\n";
    return;
  }
  for (const auto& [key, value] : n.entries) {
    begin();
    out += word(key.value) ? key.value : quote(key.value);
    const std::string flow = in_flow(value);
    out += flow.empty() ? ":\n" : fmt::format(": {}\n", flow);
    if (flow.empty()) write(value, indent + 2, false, out);
  }
  for (const Node& item : n.items) {
    begin();
    out += "- ";
    write(item, indent + 2, true, out);
  }
}

}  // namespace

std::string to_yaml(const Node& root) {
  std::string out;
  if (root.kind != Node::Kind::null) write(root, 0, false, out);
  return out;
}

}  // namespace dpt
