#include "spec/changes.h"

#include <fmt/format.h>

#include "spec/node.h"

namespace dpt {
namespace {

void flatten(const Node& n, const std::string& path, FlatSpec& out) {
  if (n.kind == Node::Kind::scalar) out[path] = n.text;
  if (n.kind == Node::Kind::null) out[path] = "null";
  for (size_t i = 0; i < n.items.size(); ++i)
    flatten(n.items[i], fmt::format("{}[{}]", path, i), out);
  for (const Node::Entry& e : n.entries)
    flatten(e.value, path.empty() ? e.key.value : path + "." + e.key.value, out);
}

}  // namespace

FlatSpec flatten_spec(const std::string& yaml, std::string* problem) {
  const SourceFile file{.path = "", .text = yaml};
  Diagnostics d;
  FlatSpec out;
  flatten(read_yaml(file, d), "", out);
  if (problem && !d.ok()) *problem = d.render();
  return out;
}

std::vector<SpecChange> spec_changes(const std::string& before, const std::string& now) {
  const FlatSpec old = flatten_spec(before), current = flatten_spec(now);
  const auto text = [](const FlatSpec& in, const std::string& key) {
    const auto found = in.find(key);
    return found == in.end() ? std::string("(not given)") : found->second;
  };
  FlatSpec all = old;
  all.insert(current.begin(), current.end());
  std::vector<SpecChange> out;
  for (const auto& [key, value] : all)
    if (text(old, key) != text(current, key))
      out.push_back({key, text(old, key), text(current, key)});
  return out;
}

}  // namespace dpt
