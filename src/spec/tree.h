// Changes of a tree before it is read: what `extends:` and overrides have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/node.h"
#include "spec/spec.h"

namespace dpt {

// The entry of a map that is none of the siblings; null where there is none.
Node::Entry* chosen_entry(Node& map, const std::vector<std::string_view>& siblings);

// `name` alone becomes `name:` with nothing after it; other things stay.
void name_as_map(Node& choice);

// What stands after a name becomes a map of keys: nothing an empty one, a main value
// {main_key: value}. False where it has no main key to become.
bool settings_as_map(Node& settings, std::string_view main_key);

// The first key of what `name` means in `words`; empty: unknown, or it takes none.
std::string_view main_key(const std::vector<const Nameable*>& words, std::string_view name);

// What may stand for a section of the top level becomes a map of its keys: `reproducible: 8`
// becomes {shards: 8}, `save: true` an empty map. Other values stay as they are.
void section_as_map(Node& value, const Vocabulary& vocabulary, std::string_view section);

void erase_key(Node& map, std::string_view key);

// Takes the key out that may not stand beside `key`.
void erase_rival(Node& map, std::string_view section, std::string_view key);

// `~` or `$HOME` at the front of a path becomes the user's home directory, where HOME names one.
std::string expand_home(const std::string& path);

// Makes the paths in a spec's tree absolute, each from the folder of the file it stands in.
void anchor_paths(Node& root, const Vocabulary& vocabulary);
// The same of what stands after the name of a data set.
void anchor_settings(Node& settings, const Nameable& what);

// `over` on top of `base`: maps merge deep, all else replaces.
Node merge(Node base, Node over, const Vocabulary& vocabulary);

}  // namespace dpt
