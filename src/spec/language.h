// The keys of a spec as tables: read_spec decodes with them, the schema and the reference print
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/choice.h"
#include "spec/spec.h"

namespace dpt {

// What the top level holds that Spec keeps elsewhere, or not at all.
struct TopKeys : Spec {
  int64_t version = 1;
  std::string device = "auto";
  std::optional<int64_t> cores;
  std::optional<double> clip_grad_value;
};

// REQUIRES: `vocabulary` outlives the table. `model:` and `blocks:` are read by the caller.
KeyTable<TopKeys> top_keys(const Vocabulary& vocabulary);
KeyTable<DataSpec> data_keys(const Vocabulary& vocabulary);

// The list of the vocabulary that KeyDoc::words names: "losses".
const Words& words_of(const Vocabulary& vocabulary, std::string_view list);

// Keys of a section of the top level and of what it can name: those of all optimizers.
std::vector<std::string_view> keys_in(const KeyDoc& section, const Vocabulary& vocabulary);

// Where a tree holds something chosen by name, and what may stand beside the name.
struct ChoicePlace {
  std::vector<std::string_view> path;  // {"data", "dataset"}
  std::string_view words;              // "datasets"
  std::vector<std::string_view> siblings;
  bool many = false;  // a list of choices
};
const std::vector<ChoicePlace>& choice_places();

// Pairs of keys of which one may stand, by the section that holds them: an override or a file that
// extends another replaces one by the other.
struct Rivals {
  std::string_view section, a, b;  // section "": the top level
};
inline constexpr Rivals kRivals[] = {{"data", "batch_size", "batch_size_per_replica"}};

}  // namespace dpt
