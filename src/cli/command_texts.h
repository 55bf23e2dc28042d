// What help, completion and the manual page say about more than one command.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/spec.h"

namespace dpt {

// An environment variable or an exit code, and what it means.
struct Meaning {
  std::string_view name, text;
};
std::span<const Meaning> environment_variables();
std::span<const Meaning> exit_codes();

// A key that may be set on the command line of any spec: "data.batch_size".
struct OverrideKey {
  std::string path;
  std::vector<std::string> values{};  // that can be named; empty: numbers, paths, ...
  bool names_file = false;            // its value is a path
};
// Without those of layers and blocks, whose names are the spec's own.
std::vector<OverrideKey> override_keys(const Registries& registries);

// The names in a registry (spec/language.h), such as "datasets".
std::vector<std::string> entry_names(std::string_view registry);

// The key that a user means by a name, such as `batch-size`: the shortest path that is the name or
// ends with it; empty: none.
std::string spec_key_named(const std::string& name);

}  // namespace dpt
