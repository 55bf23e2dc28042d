// Completion of command lines by shells.
#pragma once

#include <string>
#include <vector>

#include "cli/command_texts.h"

namespace dpt {

struct CompletionWords {
  std::vector<CommandText> commands;    // the default one first
  std::vector<OverrideKey> keys;        // of every spec
  std::vector<std::string> spec_words;  // what `dptrain explain` explains
};

// Each is a script that its shell reads at startup, or when it first completes dptrain. It
// completes commands, options and their values, spec files, keys of overrides and their values.
std::string bash_completion(const CompletionWords& words);
std::string zsh_completion(const CompletionWords& words);
std::string fish_completion(const CompletionWords& words);

}  // namespace dpt
