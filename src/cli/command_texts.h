// What the commands and their arguments are called: for the help, completion scripts and the manual
// page, which thereby always agree with what the program understands.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "spec/spec.h"

namespace dpt {

struct CommandText {
  std::string_view name, summary;
  std::string about;  // several sentences
  std::vector<ArgumentText> arguments;

  bool takes_spec() const;  // SPEC [key=value ...]
};
// All commands, the default one first.
std::vector<CommandText> command_texts();

// An environment variable or an exit code, and what it means.
struct Meaning {
  std::string_view name, text;
};
std::span<const Meaning> environment_variables();
std::span<const Meaning> exit_codes();

// A key that may be set on the command line of any spec: "data.batch_size".
struct OverrideKey {
  std::string path;
  std::vector<std::string> values;  // that can be named; empty: numbers, paths, ...
};
// Without those of layers and blocks, whose names are the spec's own.
std::vector<OverrideKey> override_keys(const Registries& registries);

// The key that a user means by a name, such as `batch-size`: the shortest path that is the name or
// ends with it; empty: none.
std::string spec_key_named(const std::string& name);

}  // namespace dpt
