// dptrain completion SHELL: a script with which a shell completes dptrain's command lines. It asks
// the program for candidates (completer.h), and the shell for names of files.
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"

namespace dpt::commands {
namespace {

constexpr const char* kBash =
    R"(# Completion of dptrain's command lines by bash; printed by `dptrain completion bash`.
_dptrain() {
  local files word
  {
    read -r files
    IFS= read -r word
    mapfile -t COMPREPLY
  } < <("${1/#\~/$HOME}" __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
  [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
  [[ $files == [fs]* ]] || return
  compopt -o filenames
  mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(
    if [[ $files == files ]]; then
      compgen -f -- "$word"
    else
      compgen -d -- "$word"
      compgen -f -X '!*.yaml' -- "$word"
      compgen -f -X '!*.yml' -- "$word"
    fi
  )
}
complete -F _dptrain dptrain
)";

constexpr const char* kZsh = R"(#compdef dptrain
# Completion of dptrain's command lines by zsh; printed by `dptrain completion zsh`.
_dptrain() {
  local word=${(Q)PREFIX} before files
  local -a lines given=("${(@Q)words[1,CURRENT-1]}") nospace
  lines=("${(@f)$(${~given[1]} __complete zsh "${(@)given[2,-1]}" "$word" 2>/dev/null)}")
  files=$lines[1]
  shift lines
  [[ $lines[1] == *= ]] && nospace=(-S '')
  # A list of values, or a key and its value: shows the last part alone.
  before=${(M)word##*[=,]}
  [[ -n $before ]] && compset -P '*[=,]' && lines=("${(@)lines#$before}")
  lines=("${(@)${(@)lines//:/\\:}/$'\t'/:}")
  (( $#lines )) && _describe -t values value lines "${nospace[@]}"
  case $files in
    files) _files ;;
    specs) _files -g '*.(yaml|yml)' ;;
  esac
}
if [[ $funcstack[1] == _dptrain ]]; then
  _dptrain "$@"
else
  compdef _dptrain dptrain
fi
)";

constexpr const char* kFish =
    R"(# Completion of dptrain's command lines by fish; printed by `dptrain completion fish`.
function __dptrain_complete
    set -l given (commandline -opc | string replace -r '^~/' ~/)
    while string match -qr '^\w+=' -- $given[1]
        set -e given[1]
    end
    set -l typed (commandline -ct)
    set -l word (string unescape -- $typed; or string replace -r '^["\']' '' -- $typed)
    set -l lines ($given[1] __complete fish $given[2..] "$word" 2>/dev/null)
    set -q lines[2]; and printf '%s\n' $lines[2..]
    set -l wanted '.*'
    switch "$lines[1]"
        case specs
            set wanted '^[^\t]*(?:/|\.ya?ml)(?:\t.*)?$'
        case words
            return
    end
    set -l before (string match -r '^.*=' -- $word)
    __fish_complete_path (string replace -r '^.*=' '' -- $word) | string match -r -- $wanted |
        string replace -r '^' -- "$before"
end
complete -c dptrain -f -a '(__dptrain_complete)'
)";

struct CompletionArguments {
  std::string shell;
};

void declare_completion(Arguments& arguments, CompletionArguments& given) {
  arguments.about(
      "Prints a script with which a shell completes commands, options, runs, files, names of\n"
      "metrics and the keys of overrides. Packages install it; otherwise, in the shell's startup\n"
      "file:\n"
      "  bash, zsh:  source <(dptrain completion bash)\n"
      "  fish:       dptrain completion fish | source");
  arguments.choice("SHELL", given.shell, {"bash", "zsh", "fish"}, "the shell");
}

int run_completion(CompletionArguments& given) {
  if (given.shell.empty()) throw BadWords{"SHELL is required: bash, zsh or fish"};
  print_stdout("{}", given.shell == "bash" ? kBash : given.shell == "zsh" ? kZsh : kFish);
  return 0;
}

}  // namespace

Command completion() {
  return make_command("completion", "print a completion script for bash, zsh or fish",
                      declare_completion, run_completion);
}

}  // namespace dpt::commands
