#include "spec/tree.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "spec/language.h"

namespace dpt {
namespace {

using Path = std::vector<std::string_view>;

class Merger {
 public:
  explicit Merger(const Registries& registries) : registries_(registries) {}

  Node merge(Node base, Node over, Path path) const {
    const auto location = std::ranges::find(choice_locations(), path, &ChoiceLocation::path);
    const bool named = location != choice_locations().end() && !location->many;
    if (over.kind != Node::Kind::map) return over;
    if (named) return merge_choice(std::move(base), std::move(over), *location);
    if (path.size() == 1) section_as_map(base, registries_, path[0]);
    if (base.kind != Node::Kind::map) return over;
    return merge_maps(std::move(base), std::move(over), path);
  }

 private:
  Node merge_maps(Node base, Node over, const Path& path) const {
    const std::string_view section = path.empty() ? "" : path.size() == 1 ? path[0] : "-";
    for (const Node::Entry& e : over.entries)
      if (!is_none(e.value, KeyKind::any)) erase_exclusive_key(base, section, e.key.value);
    std::map<std::string, size_t, std::less<>> index;
    for (size_t i = 0; i < base.entries.size(); ++i) index.emplace(base.entries[i].key.value, i);
    for (Node::Entry& e : over.entries) {
      const auto found = index.find(e.key.value);
      if (found == index.end()) {
        base.entries.push_back(std::move(e));
        continue;
      }
      Node::Entry& old = base.entries[found->second];
      Path below = path;
      below.push_back(found->first);
      Node merged = merge(std::move(old.value), std::move(e.value), below);
      old = {std::move(e.key), std::move(merged)};
    }
    base.where = over.where;
    return base;
  }

  // Choosing another name than the base drops the base's settings; keys beside the name merge.
  Node merge_choice(Node base, Node over, const ChoiceLocation& location) const {
    name_as_map(base);
    if (base.kind != Node::Kind::map) return over;
    Node::Entry* mine = chosen_entry(over, location.siblings);
    Node::Entry* theirs = chosen_entry(base, location.siblings);
    if (mine && theirs && mine->key.value != theirs->key.value) {
      erase_key(base, std::string(theirs->key.value));
    } else if (mine && theirs && mine->value.kind == Node::Kind::map) {
      settings_as_map(theirs->value,
                      main_key(registry_of(registries_, location.registry), theirs->key.value));
    }
    return merge_maps(std::move(base), std::move(over), {"-", "-"});
  }

  const Registries& registries_;
};

// Calls a function for each value of a tree that has a key, at any depth. Layers of blocks are left
// out: their values may be expressions.
class KeyValues {
 public:
  using Function = std::function<void(Node& value, const KeyDoc& key)>;

  KeyValues(const Registries& registries, Function function)
      : registries_(registries), function_(std::move(function)) {}

  void visit(Node& map, const std::vector<KeyDoc>& keys) const {
    for (const KeyDoc& k : keys)
      if (Node* value = map.find(k.name)) visit(*value, k);
  }

  // The settings after a name: a map of keys, or the value of the first one.
  void visit_settings(Node& settings, const std::vector<KeyDoc>& keys) const {
    if (settings.kind == Node::Kind::map)
      visit(settings, keys);
    else if (!keys.empty())
      visit(settings, keys[0]);
  }

 private:
  void visit(Node& n, const KeyDoc& k) const {
    for (Node& item : n.items) visit(item, k);
    if (n.kind == Node::Kind::scalar && k.main && !k.keys.empty()) return visit(n, k.keys[0]);
    function_(n, k);
    visit(n, k.keys);
    if (k.registry.empty() || k.registry == "blocks") return;
    for (Node::Entry& e : n.entries)
      if (const RegistryEntry* what = find_entry(registry_of(registries_, k.registry), e.key.value))
        visit_settings(e.value, what->describe());
  }

  const Registries& registries_;
  Function function_;
};

void anchor(Node& value, const KeyDoc& key) {
  if (key.type != KeyKind::path || value.kind != Node::Kind::scalar || value.text.empty()) return;
  const std::filesystem::path from = value.where.file ? value.where.file->folder : "";
  value.text =
      std::filesystem::absolute(from / expand_home(value.text)).lexically_normal().string();
  value.quoted = true;
}

void clear(Node& value, const KeyDoc& key) {
  if (key.type == KeyKind::path) value.text.clear();
}

void spell(Node& value, const KeyDoc& key) {
  if (const std::string_view word = find_word(value.text, key.choices); !word.empty())
    value.text = word;
}

}  // namespace

std::string expand_home(const std::string& path) {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): no thread calls setenv
  if (!home || *home == '\0') return path;
  for (const std::string_view name : {"~", "$HOME", "${HOME}"}) {
    if (!path.starts_with(name)) continue;
    const std::string rest = path.substr(name.size());
    if (rest.empty() || rest.starts_with('/')) return home + rest;
  }
  return path;
}

Node::Entry* chosen_entry(Node& map, const std::vector<std::string_view>& siblings) {
  for (Node::Entry& e : map.entries)
    if (std::ranges::find(siblings, e.key.value) == siblings.end()) return &e;
  return nullptr;
}

void name_as_map(Node& choice) {
  if (choice.kind != Node::Kind::scalar) return;
  Node map;
  map.kind = Node::Kind::map;
  map.where = choice.where;
  Node nothing;
  nothing.where = choice.where;
  map.entries.push_back({{choice.text, choice.where}, std::move(nothing)});
  choice = std::move(map);
}

bool settings_as_map(Node& settings, std::string_view key) {
  if (settings.kind == Node::Kind::map) return true;
  if (settings.kind != Node::Kind::null && key.empty()) return false;
  Node map;
  map.kind = Node::Kind::map;
  map.where = settings.where;
  if (settings.kind != Node::Kind::null)
    map.entries.push_back({{std::string(key), settings.where}, std::move(settings)});
  settings = std::move(map);
  return true;
}

std::string_view main_key(const std::vector<const RegistryEntry*>& registry,
                          std::string_view name) {
  const RegistryEntry* what = find_entry(registry, name);
  const std::vector<KeyDoc> keys = what ? what->describe() : std::vector<KeyDoc>{};
  return keys.empty() ? std::string_view() : keys[0].name;
}

void section_as_map(Node& value, const Registries& registries, std::string_view section) {
  for (const KeyDoc& k : top_keys(registries).describe()) {
    if (k.name != section || k.keys.empty() || !k.registry.empty()) continue;
    bool on = false;
    const bool is_switch = k.type == KeyKind::boolean && value.kind == Node::Kind::scalar;
    if (is_switch && parse_scalar(value, on))
      value = Node{.kind = Node::Kind::map, .where = value.where};
    else
      settings_as_map(value, k.main ? k.keys[0].name : std::string_view());
  }
}

void erase_key(Node& map, std::string_view key) {
  std::erase_if(map.entries, [&](const Node::Entry& e) { return e.key.value == key; });
}

void erase_exclusive_key(Node& map, std::string_view section, std::string_view key) {
  for (const ExclusiveKeys& r : kExclusiveKeys) {
    if (r.section != section) continue;
    if (key == r.a) erase_key(map, r.b);
    if (key == r.b) erase_key(map, r.a);
  }
}

void anchor_settings(Node& settings, const RegistryEntry& what) {
  KeyValues(Registries{}, anchor).visit_settings(settings, what.describe());
}

void anchor_paths(Node& root, const Registries& registries) {
  KeyValues(registries, anchor).visit(root, top_keys(registries).describe());
}

void clear_paths(Node& root, const Registries& registries) {
  KeyValues(registries, clear).visit(root, top_keys(registries).describe());
}

void spell_choices(Node& root, const Registries& registries) {
  KeyValues(registries, spell).visit(root, top_keys(registries).describe());
}

Node merge(Node base, Node over, const Registries& registries) {
  return Merger(registries).merge(std::move(base), std::move(over), {});
}

}  // namespace dpt
