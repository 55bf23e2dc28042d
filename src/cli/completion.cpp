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

struct CompletionArguments {
  std::string shell;
};

void declare_completion(Arguments& arguments, CompletionArguments& given) {
  arguments.about(
      "Prints a script with which a shell completes commands, options, spec files and the keys of\n"
      "overrides. Packages install it; otherwise, in the shell's startup file:\n"
      "  bash, zsh:  source <(dptrain completion bash)\n"
      "  fish:       dptrain completion fish | source");
  arguments.choice("SHELL", given.shell, {"bash", "zsh", "fish"}, "the shell");
}

int run_completion(CompletionArguments& given) {
  if (given.shell.empty()) throw BadWords{"SHELL is required: bash, zsh or fish"};
  const auto script = given.shell == "bash"  ? bash_completion
                      : given.shell == "zsh" ? zsh_completion
                                             : fish_completion;
  print_stdout("{}", script(completion_words()));
  return 0;
}

}  // namespace

Command completion() {
  return make_command("completion", "print a completion script for bash, zsh or fish",
                      declare_completion, run_completion);
}

}  // namespace dpt::commands
