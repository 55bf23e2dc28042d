// Applies `key=value` arguments of the command line to the tree.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/count.h"
#include "spec/language.h"
#include "spec/model.h"
#include "spec/tree.h"

namespace dpt {
namespace {

// One step of a path: a name, or an index in brackets.
struct Step {
  std::string name;  // empty: an index
  size_t index = 0;
  Span where;
};

// The meaning of a node in the tree, which decides how a path continues below it.
struct Shape {
  enum class Kind { plain, root, section, blocks, block, choice, choices, items, item, init };
  Kind kind = Kind::plain;
  const ChoiceLocation* location = nullptr;  // choice, choices
  std::string_view section{};                // section: "data"
};

// Where a comment begins in a value that is a text without quotes or brackets; npos: nowhere.
size_t comment_of(const std::string& argument, size_t value) {
  const size_t first = argument.find_first_not_of(" \t\n\r", value);
  if (first == argument.npos ||
      std::string_view("\"'[{|>").find(argument[first]) != std::string::npos)
    return argument.npos;
  for (size_t at = first; at < argument.size(); ++at)
    if (argument[at] == '#' && (at == value || argument[at - 1] == ' ' || argument[at - 1] == '\t'))
      return at;
  return argument.npos;
}

class Override {
 public:
  Override(Node& root, const SourceFile& argument, const Registries& registries, Diagnostics& d)
      : root_(root), argument_(argument), registries_(registries), d_(d) {
    for (const KeyDoc& k : item_keys()) beside_.push_back(k.name);
  }

  void run() {
    const std::string& text = argument_.text;
    const size_t equals = text.find('=');
    if (equals == text.npos || equals == 0) {
      d_.error(span(0, text.size()), "an override must have the form key=value");
      return;
    }
    if (!read_path(equals)) return;
    if (text.find_first_not_of(" \t\n\r", equals + 1) == text.npos) {
      const std::string key = text.substr(0, equals);
      d_.error(span(0, text.size()),
               fmt::format("'{0}' has no value, as when a shell variable is not set; write a value "
                           "after the `=`, or `{0}=null` to unset the key",
                           key));
      return;
    }
    const size_t before = d_.count();
    value_ = read_yaml(argument_, d_, equals + 1);
    if (value_.kind == Node::Kind::null) value_.where = span(0, equals);
    if (d_.count() != before) return;
    if (const size_t comment = comment_of(text, equals + 1); comment != text.npos) {
      d_.error(span(comment, text.size()),
               fmt::format("'#' starts a comment here; put the value in quotes{}",
                           text.find_first_of("\"'\\", equals) == text.npos
                               ? fmt::format(": '{}=\"{}\"'", text.substr(0, equals),
                                             text.substr(equals + 1))
                               : ""));
      return;
    }
    if (root_.kind == Node::Kind::null) return;  // the file could not be read
    set(root_, 0, {Shape::Kind::root});
  }

 private:
  Span span(size_t begin, size_t end) const {
    const std::string_view text = argument_.text;
    const size_t column = code_points(text.substr(0, begin));
    const size_t length = code_points(text.substr(begin, end - begin));
    return {.file = &argument_,
            .line = 1,
            .column = static_cast<int>(column + 1),
            .length = static_cast<int>(length)};
  }

  // Parses name(.name|[number])*.
  bool read_path(size_t end) {
    const std::string_view text = std::string_view(argument_.text).substr(0, end);
    size_t i = 0;
    while (i < end) {
      const size_t begin = i;
      if (text[i] == '[') {
        const size_t close = text.find(']', i);
        Step step{.where = span(i, close == text.npos ? end : close + 1)};
        const char* first = text.data() + i + 1;
        const char* last = text.data() + (close == text.npos ? end : close);
        const auto [stop, error] = std::from_chars(first, last, step.index);
        if (close == text.npos || error != std::errc{} || stop != last || steps_.empty()) {
          d_.error(step.where, "expected a number in brackets, as in model[2].p");
          return false;
        }
        steps_.push_back(std::move(step));
        i = close + 1;
      } else {
        if (text[i] == '.' && !steps_.empty()) ++i;
        const size_t stop = std::min(text.find_first_of(".[", i), end);
        if (stop == i || (begin == i && !steps_.empty())) {
          d_.error(span(begin, begin + 1), "expected a key, as in data.batch_size");
          return false;
        }
        steps_.push_back({.name = std::string(text.substr(i, stop - i)), .where = span(i, stop)});
        i = stop;
      }
      if (steps_.size() > kDeepest) {
        d_.error(span(0, end), fmt::format("more than {} steps", kDeepest));
        return false;
      }
    }
    return true;
  }

  void set(Node& n, size_t i, const Shape& shape) {
    if (i == steps_.size()) {
      n = value_;
      return;
    }
    const Step& step = steps_[i];
    switch (shape.kind) {
      case Shape::Kind::choice:
        return set_choice(n, i, *shape.location);
      case Shape::Kind::item:
        return set_item(n, i);
      case Shape::Kind::items:
        return set_in_items(n, i);
      case Shape::Kind::init:
        return set_init(n, i);
      case Shape::Kind::choices: {
        if (n.kind == Node::Kind::scalar || n.kind == Node::Kind::map) {
          Node list{.kind = Node::Kind::list, .where = n.where};
          list.items.push_back(std::move(n));
          n = std::move(list);
        }
        return set_in_list(n, i, {Shape::Kind::choice, shape.location});
      }
      case Shape::Kind::plain:
      case Shape::Kind::root:
      case Shape::Kind::section:
      case Shape::Kind::blocks:
      case Shape::Kind::block:
        if (step.name.empty())
          set_in_list(n, i, {});
        else
          set_in_map(n, i, shape);
    }
  }

  void set_in_list(Node& n, size_t i, const Shape& below) {
    const Step& step = steps_[i];
    if (n.kind != Node::Kind::list || !step.name.empty()) {
      d_.error(step.where,
               fmt::format("'{}' is {}", path(i),
                           n.kind == Node::Kind::list ? "a list: choose an entry, as in [0]"
                                                      : "not a list"));
    } else if (step.index >= n.items.size()) {
      d_.error(step.where, fmt::format("'{}' has {}, counted from 0", path(i),
                                       counted(n.items.size(), "entry", "entries")));
    } else {
      set(n.items[step.index], i + 1, below);
    }
  }

  void set_in_map(Node& n, size_t i, const Shape& shape) {
    const Step& step = steps_[i];
    if (n.kind == Node::Kind::null) n = {.kind = Node::Kind::map, .where = step.where};
    if (n.kind != Node::Kind::map) {
      d_.error(step.where, fmt::format("'{}' is not a map, so it has no '{}'", path(i), step.name));
      return;
    }
    const bool last = i + 1 == steps_.size();
    const bool of_section = shape.kind == Shape::Kind::root || shape.kind == Shape::Kind::section;
    if (last && of_section && !is_none(value_, KeyKind::any))
      erase_exclusive_key(n, shape.section, step.name);
    Node* value = n.find(step.name);
    const bool made = value == nullptr;
    const size_t before = d_.count();
    if (made) {
      n.entries.push_back({{step.name, step.where}, Node{.where = step.where}});
      value = &n.entries.back().value;
    }
    const Shape child = below(shape, step.name);
    // Replace a short form such as `evaluate: true` or `reproducible: 8` by a map, to add keys.
    if (!last && shape.kind == Shape::Kind::root && value->kind == Node::Kind::scalar)
      section_as_map(*value, registries_, step.name);
    set(*value, i + 1, child);
    if (made && d_.count() != before) erase_key(n, step.name);  // one error is enough
  }

  static Shape below(const Shape& shape, std::string_view key) {
    using Kind = Shape::Kind;
    std::vector<std::string_view> at = {key};
    if (shape.kind == Kind::section) at = {shape.section, key};
    if (shape.kind == Kind::root || shape.kind == Kind::section)
      for (const ChoiceLocation& p : choice_locations())
        if (p.path == at) return {p.many ? Kind::choices : Kind::choice, &p};
    if (shape.kind == Kind::root && (key == "data" || key == "evaluate"))
      return {.kind = Kind::section, .location = nullptr, .section = key};
    if (shape.kind == Kind::root && key == "blocks") return {Kind::blocks};
    if (shape.kind == Kind::root && key == "model") return {Kind::items};
    if (shape.kind == Kind::blocks) return {Kind::block};
    if (shape.kind == Kind::block && key == "layers") return {Kind::items};
    return {};
  }

  void set_choice(Node& n, size_t i, const ChoiceLocation& location) {
    const Step& step = steps_[i];
    const Registry& registry = registry_of(registries_, location.registry);
    const bool beside = std::ranges::find(location.siblings, step.name) != location.siblings.end();
    name_as_map(n);
    if (n.kind == Node::Kind::null) n = {.kind = Node::Kind::map, .where = step.where};
    Node::Entry* chosen = chosen_entry(n, location.siblings);
    if (n.kind == Node::Kind::map && beside) {
      set_in_map(n, i, {});
    } else if (chosen && step.name != chosen->key.value &&
               !has_key(registry, chosen->key.value, step.name) &&
               find_entry(registry, step.name)) {
      *chosen = {{step.name, step.where}, Node{.where = step.where}};
      set(chosen->value, i + 1, {});
    } else if (chosen) {
      set_in_settings(*chosen, i, main_key(registry, chosen->key.value));
    } else if (n.kind == Node::Kind::map && find_entry(registry, step.name)) {
      set_in_map(n, i, {});
    } else {
      d_.error(step.where, fmt::format("'{}' is not set, so it has no '{}'", path(i), step.name));
    }
  }

  static bool has_key(const Registry& registry, std::string_view name, std::string_view key) {
    const RegistryEntry* what = find_entry(registry, name);
    if (!what) return false;
    const std::vector<KeyDoc> keys = what->describe();
    return std::ranges::find(keys, key, &KeyDoc::name) != keys.end();
  }

  // Sets a key of the chosen entry, or replaces the entry: optimizer.lr, optimizer.adam.lr,
  // optimizer.adam.
  void set_in_settings(Node::Entry& chosen, size_t i, std::string_view main) {
    const bool again = steps_[i].name == chosen.key.value;
    if (again && i + 1 == steps_.size()) {
      chosen.value = value_;
    } else if (settings_as_map(chosen.value, main)) {
      set_in_map(chosen.value, again ? i + 1 : i, {});
    } else {
      d_.error(steps_[i].where, fmt::format("'{}' has no '{}'", chosen.key.value, steps_[i].name));
    }
  }

  void set_in_items(Node& n, size_t i) {
    const Step& step = steps_[i];
    if (step.name.empty() || n.kind != Node::Kind::list)
      return set_in_list(n, i, {Shape::Kind::item});
    std::vector<std::string_view> names;
    for (Node& item : n.items) {
      const Node* name = item.find("name");
      if (!name) continue;
      if (name->text == step.name) return set(item, i + 1, {Shape::Kind::item});
      names.push_back(name->text);
    }
    if (step.name.find_first_not_of("0123456789") == std::string::npos)
      return d_.error(
          step.where,
          fmt::format("no layer is named '{0}'; to choose a layer by number, write {1}[{0}]",
                      step.name, path(i)));
    if (names.empty())
      return d_.error(step.where, fmt::format("no layer has a name; use {}[{}]", path(i),
                                              index_of_layer(n, step.name)));
    d_.unknown("name", {step.name, step.where}, fmt::format(" in '{}'", path(i)), names);
  }

  // The index of the first entry that is a layer of this type; 0 if there is none.
  std::ptrdiff_t index_of_layer(const Node& list, const std::string& type) const {
    const auto is_of_type = [&](const Node& item) {
      return item.text == type || item.find(type) != nullptr;
    };
    const auto at = std::ranges::find_if(list.items, is_of_type);
    return at == list.items.end() ? 0 : at - list.items.begin();
  }

  void set_item(Node& n, size_t i) {
    const Step& step = steps_[i];
    name_as_map(n);
    Node::Entry* chosen = chosen_entry(n, beside_);
    if (n.kind == Node::Kind::map && std::ranges::find(beside_, step.name) != beside_.end()) {
      Node* init = step.name == "init" ? n.find(step.name) : nullptr;
      if (init)
        set(*init, i + 1, {Shape::Kind::init});
      else
        set_in_map(n, i, {});
    } else if (!chosen) {
      d_.error(step.where, fmt::format("'{}' names no layer", path(i)));
    } else if (chosen->key.value == "residual") {
      settings_as_map(chosen->value, "body");
      Node* list = chosen->value.find(step.name);
      if (list && (step.name == "body" || step.name == "shortcut"))
        set(*list, i + 1, {Shape::Kind::items});
      else
        set_in_map(chosen->value, i, {});
    } else {
      set_in_settings(*chosen, i, main_of_item(chosen->key.value));
    }
  }

  // Sets an initialization: `zeros`, {normal: 0.02}, or {weight: ..., bias: ...}. A single one
  // applies to the weight.
  void set_init(Node& n, size_t i) {
    static const ChoiceLocation location{.path = {}, .registry = "initialisations", .siblings = {}};
    const auto is_parameter = [](std::string_view s) {
      return std::ranges::find(kInitKeys, s) != std::end(kInitKeys);
    };
    const bool by_parameter =
        std::ranges::any_of(kInitKeys, [&](std::string_view key) { return n.find(key); });
    if (!is_parameter(steps_[i].name) && !by_parameter) return set_choice(n, i, location);
    if (!is_parameter(steps_[i].name)) {
      if (Node* weight = n.find("weight")) return set_choice(*weight, i, location);
      return set_in_map(n, i, {});
    }
    if (!by_parameter) {
      Node map{.kind = Node::Kind::map, .where = n.where};
      if (n.kind != Node::Kind::null) map.entries.push_back({{"weight", n.where}, std::move(n)});
      n = std::move(map);
    }
    if (Node* own = n.find(steps_[i].name); own && i + 1 < steps_.size())
      set_choice(*own, i + 1, location);
    else
      set_in_map(n, i, {});
  }

  std::string_view main_of_item(std::string_view name) const {
    const Node* blocks = root_.find("blocks");
    const Node* block = blocks ? blocks->find(name) : nullptr;
    const Node* parameters = block ? block->find("parameters") : nullptr;
    if (parameters && !parameters->entries.empty()) return parameters->entries[0].key.value;
    return main_key(registries_.layers, name);
  }

  // The path before step i, as in "model[2]".
  std::string path(size_t i) const {
    const int stop = i < steps_.size() ? steps_[i].where.column - 1 : 0;
    std::string text;
    for (size_t k = 0; k < i; ++k)
      text += steps_[k].name.empty() ? fmt::format("[{}]", steps_[k].index)
                                     : (k > 0 ? "." : "") + steps_[k].name;
    return stop > 0 ? text : "the spec";
  }

  Node& root_;
  const SourceFile& argument_;
  const Registries& registries_;
  Diagnostics& d_;
  std::vector<std::string_view> beside_;
  std::vector<Step> steps_;
  Node value_;
};

}  // namespace

void apply_override(Node& root, const SourceFile& argument, const Registries& registries,
                    Diagnostics& d) {
  Override(root, argument, registries, d).run();
}

}  // namespace dpt
