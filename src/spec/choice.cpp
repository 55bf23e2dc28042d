#include "spec/choice.h"

#include <algorithm>

#include <fmt/format.h>

namespace dpt {

std::vector<std::string_view> names_of(const Registry& registry) {
  std::vector<std::string_view> names;
  for (const RegistryEntry* w : registry) names.push_back(w->name);
  return names;
}

const RegistryEntry* find_entry(const Registry& registry, std::string_view name) {
  const auto w = std::ranges::find(registry, name, &RegistryEntry::name);
  return w == registry.end() ? nullptr : *w;
}

Choice decode_choice(std::string_view what, const Located<std::string>& name, const Node& settings,
                     const Registry& registry, Diagnostics& d) {
  Choice out{.where = name.where};
  out.what = find_entry(registry, name.value);
  if (!out.what) {
    d.unknown(what, name, "", names_of(registry));
    return out;
  }
  const Owner owner{fmt::format("{} '{}'", what, name.value), name.where};
  out.settings = out.what->decode(settings, owner, d);
  return out;
}

namespace {

// Reports a key beside the chosen name that is not one of the `siblings`.
void tell_beside(std::string_view what, std::string_view chosen, const Located<std::string>& key,
                 const Registry& registry, std::vector<std::string_view> siblings, Diagnostics& d) {
  const RegistryEntry* type = find_entry(registry, chosen);
  if (!type || find_entry(registry, key.value))
    return d.error(key.where, fmt::format("'{}' and '{}' are both given; choose one {}", chosen,
                                          key.value, what));
  for (const KeyDoc& k : type->describe()) {
    if (k.name == key.value)
      return d.error(
          key.where,
          fmt::format("'{0}' is a key of the {1} '{2}' and belongs inside it: {2}: {{{0}: ...}}",
                      key.value, what, chosen));
    siblings.push_back(k.name);
  }
  d.unknown("key", key, fmt::format(" next to {} '{}'", what, chosen), siblings);
}

// Reports {name: adam, lr: 0.1}, the style of other programs, with one error instead of one per
// key.
bool tell_named(std::string_view what, const Node& n, const Registry& registry, Diagnostics& d) {
  for (const Node::Entry& e : n.entries) {
    const bool naming = e.key.value == "name" || e.key.value == "type";
    if (!naming || e.value.kind != Node::Kind::scalar || !find_entry(registry, e.value.text))
      continue;
    d.error(e.key.where, fmt::format("use the name of the {0} as the key: write `{1}: {{...}}` "
                                     "instead of `{2}: {1}`",
                                     what, e.value.text, e.key.value));
    return true;
  }
  return false;
}

}  // namespace

Choice read_choice(std::string_view what, const Node& n, const Registry& registry, Diagnostics& d,
                   const std::vector<std::string_view>& siblings) {
  if (n.kind == Node::Kind::scalar)
    return decode_choice(what, {n.text, n.where}, Node{}, registry, d);
  if (tell_named(what, n, registry, d)) return {};
  const Node::Entry* chosen = nullptr;
  for (const Node::Entry& e : n.entries) {
    if (std::ranges::find(siblings, e.key.value) != siblings.end()) continue;
    if (chosen && d.full())
      d.error(e.key.where, "only one choice is possible; delete this one");
    else if (chosen)
      tell_beside(what, chosen->key.value, e.key, registry, siblings, d);
    else
      chosen = &e;
  }
  if (chosen) return decode_choice(what, chosen->key, chosen->value, registry, d);
  if (n.kind != Node::Kind::map || n.entries.empty())
    d.error(n.where, fmt::format("expected the name of one {}: {}", what,
                                 fmt::join(names_of(registry), ", ")));
  return {};
}

std::vector<Choice> read_choices(std::string_view what, const Node& n, const Registry& registry,
                                 Diagnostics& d) {
  std::vector<Choice> out;
  if (n.kind != Node::Kind::list) return {read_choice(what, n, registry, d)};
  for (const Node& i : n.items) out.push_back(read_choice(what, i, registry, d));
  return out;
}

}  // namespace dpt
