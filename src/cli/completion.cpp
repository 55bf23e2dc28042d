// dptrain completion SHELL: a script that lets a shell complete dptrain's command lines.
#include <set>

#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/completion_scripts.h"
#include "session/session.h"
#include "spec/language.h"
#include "spec/schema.h"

namespace dpt::commands {
namespace {

CompletionWords completion_words() {
  const Registries v = registries();
  CompletionWords out{.commands = command_texts(), .keys = override_keys(v)};
  std::set<std::string> words;
  for (const RegistryInfo& list : registry_infos())
    for (const RegistryEntry* word : registry_of(v, list.list)) words.emplace(word->name);
  for (const KeyDoc& key : top_keys(v).describe()) words.emplace(key.name);
  out.spec_words = {words.begin(), words.end()};
  return out;
}

int run_completion(const std::vector<std::string>& words) {
  Arguments arguments(
      "completion",
      "Prints a script with which a shell completes commands, options, spec files and the keys of\n"
      "overrides. Packages install it; otherwise, in the shell's startup file:\n"
      "  bash, zsh:  source <(dptrain completion bash)\n"
      "  fish:       dptrain completion fish | source");
  std::string shell;
  arguments.choice("SHELL", shell, {"bash", "zsh", "fish"}, "the shell");
  arguments.parse(words);
  if (shell.empty()) throw BadWords{"SHELL is required: bash, zsh or fish"};
  const auto script = shell == "bash"  ? bash_completion
                      : shell == "zsh" ? zsh_completion
                                       : fish_completion;
  print_stdout("{}", script(completion_words()));
  return 0;
}

}  // namespace

Command completion() {
  return {"completion", "print a completion script for bash, zsh or fish", run_completion};
}

}  // namespace dpt::commands
