// The key tables of a spec. read_spec() decodes with them; the schema and the reference page print
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/choice.h"
#include "spec/spec.h"

namespace dpt {

// Top-level keys that Spec stores elsewhere or not at all.
struct TopKeys : Spec {
  int64_t version = 1;
  std::string device = "auto";
  std::optional<int64_t> cores;
  std::optional<double> clip_grad_value;
};

// `model:` and `blocks:` are read by the caller. REQUIRES: `registries` outlives the table.
KeyTable<TopKeys> top_keys(const Registries& registries);
KeyTable<DataSpec> data_keys(const Registries& registries);

// The registry with a name of KeyDoc::registry, such as "losses".
const Registry& registry_of(const Registries& registries, std::string_view list);

// The keys of a top-level section and of everything that it can name, such as the keys of all
// optimizers.
std::vector<std::string_view> keys_in(const KeyDoc& section, const Registries& registries);

// A location in the tree that holds a choice by name, and the keys that may appear beside the name.
struct ChoiceLocation {
  std::vector<std::string_view> path;  // {"data", "dataset"}
  std::string_view registry;           // "datasets"
  std::vector<std::string_view> siblings;
  bool many = false;  // a list of choices
};
const std::vector<ChoiceLocation>& choice_locations();

// Pairs of keys that exclude each other, and their section. When an override or an extending file
// sets one of them, the other is removed.
struct ExclusiveKeys {
  std::string_view section, a, b;  // section "": the top level
};
inline constexpr ExclusiveKeys kExclusiveKeys[] = {
    {.section = "data", .a = "batch_size", .b = "batch_size_per_replica"},
    {.section = "evaluate", .a = "every", .b = "every_steps"}};

}  // namespace dpt
