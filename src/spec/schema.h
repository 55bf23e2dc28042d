// Prints the spec language for editors (JSON Schema), for readers (Markdown) and for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/spec.h"

namespace dpt {

// The JSON Schema (draft-07) of the whole language. A file with `extends` may omit required keys.
// In a file with `blocks` or `extends`, unknown layer names are assumed to be blocks, which a
// schema cannot look up.
std::string json_schema(const Registries& registries);

// The reference of the language as one Markdown page.
std::string reference_page(const Registries& registries);

// Explains one word for a terminal: a registry entry (layer, loss, ...), a key of the top level or
// of one of its sections ("batch_size", "data.batch_size"), or a key of a registry entry ("lr",
// "optimizer.lr", "adam.lr"), with its keys, choices, defaults and meaning. If several things have
// the name, explains all of them. If none has, says what a word of PyTorch is called here, or what
// to do instead; empty if it is not known either.
std::string explain(const Registries& registries, std::string_view word);

// The words that explain() knows; some more than once.
std::vector<std::string> known_words(const Registries& registries);

// The word known to explain() that is most similar to an unknown one; empty if none is similar.
std::string nearest_word(const Registries& registries, std::string_view word);

// The lists of a registries and their titles.
struct RegistryInfo {
  std::string_view list, title, what;  // "losses", "Losses", "loss"
};
const std::vector<RegistryInfo>& registry_infos();

}  // namespace dpt
