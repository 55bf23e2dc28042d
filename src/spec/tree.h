// Changes of a tree before it is read, used by `extends:` and overrides.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/node.h"
#include "spec/spec.h"

namespace dpt {

// The entry of a map that is not one of the siblings; null if there is none.
Node::Entry* chosen_entry(Node& map, const std::vector<std::string_view>& siblings);

// Turns a bare `name` into a map with the key `name`; leaves other nodes unchanged.
void name_as_map(Node& choice);

// Turns the settings after a name into a map of keys: an empty value into an empty map, a main
// value into {main_key: value}. Returns false if there is a value but no main key.
bool settings_as_map(Node& settings, std::string_view main_key);

// The first key of the entry `name` in `words`; empty if the name is unknown or takes no keys.
std::string_view main_key(const std::vector<const RegistryEntry*>& registry, std::string_view name);

// Turns the short form of a top-level section into a map of its keys: `reproducible: 8` into
// {shards: 8}, `save: true` into an empty map. Leaves other values unchanged.
void section_as_map(Node& value, const Registries& registries, std::string_view section);

void erase_key(Node& map, std::string_view key);

// Removes the key that excludes `key`, if there is one (kRivals).
void erase_exclusive_key(Node& map, std::string_view section, std::string_view key);

// Replaces a leading `~` or `$HOME` by the user's home directory, if HOME is set.
std::string expand_home(const std::string& path);

// Makes the paths in a spec's tree absolute. Relative ones start from their file's folder.
void anchor_paths(Node& root, const Registries& registries);
// The same for the settings after a data set's name.
void anchor_settings(Node& settings, const RegistryEntry& what);

// Makes the paths in a spec's tree empty, to compare specs of machines that have the same files in
// different folders.
void clear_paths(Node& root, const Registries& registries);

// Writes words in other capitals as their keys list them: `level: O1` becomes `level: o1`.
void spell_choices(Node& root, const Registries& registries);

// Merges `over` into `base`: maps merge recursively, other values are replaced.
Node merge(Node base, Node over, const Registries& registries);

}  // namespace dpt
