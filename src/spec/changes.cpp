#include "spec/changes.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "spec/language.h"
#include "spec/model.h"
#include "spec/tree.h"

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

// Gives main values their keys, and notes what is chosen where.
class NormalForm {
 public:
  NormalForm(Node& root, const Registries& registries) : root_(root), registries_(registries) {}

  void make() {
    for (const KeyDoc& k : top_keys(registries_).describe()) make_section(k);
    for (const ChoiceLocation& choice : choice_locations()) {
      Node* n = &root_;
      for (const std::string_view key : choice.path) n = n ? n->find(key) : nullptr;
      if (n) make_choices(*n, choice, fmt::format("{}", fmt::join(choice.path, ".")));
    }
    if (Node* model = root_.find("model")) make_items(*model, "model");
    if (Node* blocks = root_.find("blocks"))
      for (Node::Entry& block : blocks->entries)
        if (Node* layers = block.value.find("layers"))
          make_items(*layers, fmt::format("blocks.{}.layers", block.key.value));
  }

  const FlatSpec& chosen() const { return chosen_; }  // "adam" under "optimizer"

 private:
  // `reproducible: 8`; a switch stays one.
  void make_section(const KeyDoc& k) {
    if (!k.main || k.keys.empty() || !k.registry.empty()) return;
    Node* n = root_.find(k.name);
    bool on = false;
    if (n && n->kind == Node::Kind::scalar && !parse_scalar(*n, on))
      settings_as_map(*n, k.keys[0].name);
  }

  void make_choices(Node& n, const ChoiceLocation& choice, const std::string& path) {
    const Registry& registry = registry_of(registries_, choice.registry);
    if (!choice.many) return make_choice(n, registry, choice.siblings, path);
    if (n.kind == Node::Kind::scalar || n.kind == Node::Kind::map) {
      Node list{.kind = Node::Kind::list, .where = n.where};
      list.items.push_back(std::move(n));
      n = std::move(list);
    }
    for (size_t i = 0; i < n.items.size(); ++i)
      make_choice(n.items[i], registry, choice.siblings, fmt::format("{}[{}]", path, i));
  }

  void make_choice(Node& n, const Registry& registry, const std::vector<std::string_view>& siblings,
                   const std::string& path) {
    if (n.kind != Node::Kind::map) return;
    Node::Entry* what = chosen_entry(n, siblings);
    if (!what) return;
    chosen_[path] = what->key.value;
    settings_as_map(what->value, main_key(registry, what->key.value));
  }

  void make_items(Node& list, const std::string& path) {
    for (size_t i = 0; i < list.items.size(); ++i)
      make_item(list.items[i], fmt::format("{}[{}]", path, i));
  }

  void make_item(Node& n, const std::string& path) {
    if (n.kind == Node::Kind::list) return make_items(n, path);
    if (n.kind != Node::Kind::map) return;
    std::vector<std::string_view> beside;
    for (const KeyDoc& k : item_keys_) beside.push_back(k.name);
    Node::Entry* what = chosen_entry(n, beside);
    if (!what) return;
    const std::string name = what->key.value;
    chosen_[path] = name;
    const Node* blocks = root_.find("blocks");
    const Node* block = blocks ? blocks->find(name) : nullptr;
    const Node* parameters = block ? block->find("parameters") : nullptr;
    if (name == "residual")
      settings_as_map(what->value, "body");
    else if (parameters && !parameters->entries.empty())
      settings_as_map(what->value, parameters->entries[0].key.value);
    else
      settings_as_map(what->value, main_key(registries_.layers, name));
    for (const char* branch : {"body", "shortcut"})
      if (Node* items = name == "residual" ? what->value.find(branch) : nullptr)
        make_items(*items, fmt::format("{}.residual.{}", path, branch));
  }

  Node& root_;
  const Registries& registries_;
  const std::vector<KeyDoc> item_keys_ = item_keys();
  FlatSpec chosen_;
};

}  // namespace

FlatSpec flatten_spec(const std::string& yaml, const Registries& registries, std::string* problem) {
  const SourceFile file{.path = "", .text = yaml};
  Diagnostics d;
  Node root = read_yaml(file, d);
  NormalForm form(root, registries);
  form.make();
  FlatSpec out = form.chosen();
  flatten(root, "", out);
  if (problem && !d.ok()) *problem = d.render();
  return out;
}

std::string key_of_main_value(const std::string& key, const Registries& registries) {
  for (const ChoiceLocation& choice : choice_locations()) {
    const std::string path = fmt::format("{}.", fmt::join(choice.path, "."));
    if (choice.many || !key.starts_with(path)) continue;
    const std::string_view first =
        main_key(registry_of(registries, choice.registry), key.substr(path.size()));
    if (!first.empty()) return fmt::format("{}.{}", key, first);
  }
  return key;
}

std::vector<SpecChange> spec_changes(const std::string& before, const std::string& now,
                                     const Registries& registries) {
  const FlatSpec old = flatten_spec(before, registries), current = flatten_spec(now, registries);
  const auto text = [](const FlatSpec& in, const std::string& key) {
    const auto found = in.find(key);
    return found == in.end() ? std::string("(not given)") : found->second;
  };
  FlatSpec all = old;
  all.insert(current.begin(), current.end());
  std::vector<SpecChange> out;
  for (const auto& [key, value] : all)
    if (text(old, key) != text(current, key))
      out.push_back({.key = key, .before = text(old, key), .now = text(current, key)});
  return out;
}

}  // namespace dpt
