// Decodes choices by name, written in one of three ways: `name`, `name: main value`, `name: {key:
// value}`.
#pragma once

#include <string_view>
#include <vector>

#include "spec/registry_entry.h"

namespace dpt {

using Registry = std::vector<const RegistryEntry*>;

std::vector<std::string_view> names_of(const Registry& registry);
const RegistryEntry* find_entry(const Registry& registry, std::string_view name);

// Decodes a choice. `what`: its kind for messages, as "optimizer". `siblings`: keys that may appear
// beside the name, which the caller reads. Returns an empty Choice after an error, or if there are
// only siblings.
Choice read_choice(std::string_view what, const Node& n, const Registry& registry, Diagnostics& d,
                   const std::vector<std::string_view>& siblings = {});

// Decodes a choice whose name and settings the caller has already separated.
Choice decode_choice(std::string_view what, const Located<std::string>& name, const Node& settings,
                     const Registry& registry, Diagnostics& d);

// Decodes a list of choices; a single choice is a list of one.
std::vector<Choice> read_choices(std::string_view what, const Node& n, const Registry& registry,
                                 Diagnostics& d);

}  // namespace dpt
