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
std::string json_schema(const Vocabulary& vocabulary);

// The reference of the language as one Markdown page.
std::string reference_page(const Vocabulary& vocabulary);

// Explains one word for a terminal: a registry entry (layer, loss, ...), a key of the top level or
// of one of its sections ("batch_size", "data.batch_size"), or a key of a registry entry ("lr",
// "optimizer.lr", "adam.lr"), with its keys, choices, defaults and meaning. If several things have
// the name, explains all of them; empty if none has.
std::string explain(const Vocabulary& vocabulary, std::string_view word);

// The word known to explain() that is most similar to an unknown one; empty if none is similar.
std::string nearest_word(const Vocabulary& vocabulary, std::string_view word);

// The lists of a vocabulary and their titles.
struct WordList {
  std::string_view list, title, what;  // "losses", "Losses", "loss"
};
const std::vector<WordList>& word_lists();

}  // namespace dpt
