// What the tables say, printed: for editors (JSON Schema), for readers (Markdown), for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/spec.h"

namespace dpt {

// JSON Schema, draft-07, of the whole language. A file with `extends` may leave required keys out.
// In a file with `blocks` or `extends`, names that are no layer are taken for blocks, which a
// schema cannot look up.
std::string json_schema(const Vocabulary& vocabulary);

// The reference of the language as one Markdown page.
std::string reference_page(const Vocabulary& vocabulary);

// One word for a terminal: a layer, loss, ..., a key of the top level or of a section of it
// ("batch_size", "data.batch_size"), or of what a spec can name ("lr", "optimizer.lr", "adam.lr"),
// with its keys, choices, defaults and meaning; all of them where several have the name. "" where
// nothing has.
std::string explain(const Vocabulary& vocabulary, std::string_view word);

// The word that explain() knows and that is nearest to an unknown one; empty: none is near.
std::string nearest_word(const Vocabulary& vocabulary, std::string_view word);

// The lists of a vocabulary with what they are called.
struct WordList {
  std::string_view list, title, what;  // "losses", "Losses", "loss"
};
const std::vector<WordList>& word_lists();

}  // namespace dpt
