#include "cli/completion_scripts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dpt {
namespace {

// In single quotes. fish understands \' between them, the others end and begin them again.
std::string in_quotes(std::string_view text, std::string_view quote = "'\\''") {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += quote;
    else
      out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

std::string fish_quoted(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return in_quotes(escaped, "\\'");
}

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

bool takes_file(const ArgumentText& a) {
  const std::string value = a.stands_alone() ? a.names : a.value();
  for (const char* file : {"FILE", "PATH", "DIR", "DATA", "A", "B"})
    if (value == file) return true;
  return false;
}

std::vector<std::string> names_of(const std::vector<CommandText>& commands) {
  std::vector<std::string> out;
  for (const CommandText& c : commands) out.emplace_back(c.name);
  return out;
}

std::vector<std::string> options_of(const CommandText& command) {
  std::vector<std::string> out;
  for (const ArgumentText& a : command.arguments)
    if (!a.stands_alone())
      for (const std::string& name : a.dashed()) out.push_back(name);
  out.emplace_back("--help");
  return out;
}

std::vector<std::string> assignments(const std::vector<OverrideKey>& keys) {
  std::vector<std::string> out;
  for (const OverrideKey& k : keys) out.push_back(k.path + "=");
  return out;
}

// The words that an argument takes; empty where it takes anything else.
std::vector<std::string> words_of(const ArgumentText& a, const CompletionWords& all) {
  if (a.names == "WORD") return all.spec_words;
  return a.choices;
}

// A `case` branch for every key with values that have names.
std::string value_branches(const CompletionWords& words, std::string_view form) {
  std::string out;
  for (const OverrideKey& k : words.keys)
    if (!k.values.empty())
      out += fmt::format(fmt::runtime(form), fmt::arg("key", k.path),
                         fmt::arg("values", joined(k.values)));
  return out;
}

// Replaces each @NAME@ of a template.
using Parts = std::vector<std::pair<std::string_view, std::string>>;
std::string filled(std::string text, const Parts& parts) {
  for (const auto& [name, part] : parts) {
    const std::string mark = fmt::format("@{}@", name);
    for (size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + part.size()))
      text.replace(at, mark.size(), part);
  }
  return text;
}

// The word under the cursor is taken from the line: bash splits its own words at `=`, and readline
// replaces what stands behind it.
constexpr const char* kBash =
    R"(# Completion of dptrain's command lines by bash; printed by `dptrain completion bash`.
_dptrain_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }

_dptrain_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

_dptrain_specs() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(
    compgen -d -- "$cur"
    compgen -f -X '!*.yaml' -- "$cur"
    compgen -f -X '!*.yml' -- "$cur"
  )
}

_dptrain_overrides() {
  local key=${cur%%=*} values=''
  if [[ $cur != *=* ]]; then
    compopt -o nospace 2>/dev/null
    _dptrain_words '@KEYS@'
    return
  fi
  case $key in
@VALUES@  esac
  cur=${cur#*=}
  _dptrain_words "$values"
  [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/$key=}")
}

_dptrain() {
  local line=${COMP_LINE:0:COMP_POINT} cur prev command=train spec='' options='' word
  local -a before arguments
  cur=${line##*[[:space:]]}
  read -ra before <<<"${line%"$cur"}"
  prev=${before[${#before[@]} - 1]}
  arguments=("${before[@]:1}")
  COMPREPLY=()
  if ((${#before[@]} == 1)) && [[ $cur != -* ]]; then
    _dptrain_specs
    local -a files=("${COMPREPLY[@]}")
    _dptrain_words '@COMMANDS@ help'
    COMPREPLY+=("${files[@]}")
    return
  fi
  case ${before[1]-} in
    @COMMAND_PATTERN@) command=${before[1]} arguments=("${before[@]:2}") ;;
    help) _dptrain_words '@COMMANDS@'; return ;;
  esac
  case "$command $prev" in
@OPTION_VALUES@  esac
  case $command in
@OPTIONS@  esac
  ((${#before[@]} > 1)) || options="$options --version"
  if [[ $cur == -* ]]; then
    _dptrain_words "$options"
    return
  fi
  for word in "${arguments[@]}"; do
    [[ $word == *.yaml || $word == *.yml ]] && spec=$word
  done
  case $command in
@ARGUMENTS@  esac
}

complete -F _dptrain dptrain
)";

std::string bash_action(const ArgumentText& a, const CompletionWords& all) {
  if (a.names == "SPEC")
    return "if [[ -n $spec ]]; then _dptrain_overrides; else _dptrain_specs; fi";
  if (takes_file(a)) return "_dptrain_files";
  const std::vector<std::string> words = words_of(a, all);
  return words.empty() ? ":" : fmt::format("_dptrain_words {}", in_quotes(joined(words)));
}

constexpr const char* kZsh = R"(#compdef dptrain
# Completion of dptrain's command lines by zsh; printed by `dptrain completion zsh`.
_dptrain_specs() { _files -g '*.(yaml|yml)' }

_dptrain_overrides() {
  if compset -P '*='; then
    local -a values
    case ${IPREFIX%=} in
@VALUES@    esac
    compadd -a values
  else
    compadd -S '' -- @KEYS@
  fi
}

_dptrain() {
  local -a commands
  commands=(
@COMMANDS@  )
  if (( CURRENT == 2 )); then
    if [[ $PREFIX == -* ]]; then
      compadd -- --help --version @DEFAULT_OPTIONS@
    else
      _describe -t commands command commands
      _dptrain_specs
    fi
    return
  fi
  local command=$words[2]
  if (( $+commands[(r)$command:*] )); then
    shift words
    (( CURRENT-- ))
  else
    command=train
  fi
  case $command in
    help) (( CURRENT == 2 )) && _describe -t commands command commands ;;
@ARGUMENTS@  esac
}

if [[ $funcstack[1] == _dptrain ]]; then
  _dptrain "$@"
else
  compdef _dptrain dptrain
fi
)";

// Help in the brackets of a specification for _arguments.
std::string zsh_help(std::string_view help) {
  std::string out;
  for (const char c : help) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_value(const ArgumentText& a, const CompletionWords& all) {
  if (a.names == "SPEC") return "_dptrain_specs";
  if (a.names == "KEY_VALUE") return "_dptrain_overrides";
  if (takes_file(a)) return "_files";
  const std::vector<std::string> words = words_of(a, all);
  return words.empty() ? " " : fmt::format("({})", joined(words));
}

std::string zsh_argument(const ArgumentText& a, int place, const CompletionWords& all) {
  if (a.stands_alone())
    return in_quotes(fmt::format("{}:{}:{}", a.many ? "*" : std::to_string(place),
                                 zsh_help(a.names), zsh_value(a, all)));
  std::string out;
  for (const std::string& name : a.dashed()) {
    const std::string value =
        a.flag ? "" : fmt::format(":{}:{}", zsh_help(a.value()), zsh_value(a, all));
    out += fmt::format("{}{}", out.empty() ? "" : " ",
                       in_quotes(fmt::format("{}[{}]{}", name, zsh_help(a.help), value)));
  }
  return out;
}

constexpr const char* kFish =
    R"(# Completion of dptrain's command lines by fish; printed by `dptrain completion fish`.
function __dptrain_command
    set -l words (commandline -opc)
    if test (count $words) -gt 1; and contains -- $words[2] help @COMMAND_NAMES@
        echo $words[2]
    else
        echo train
    end
end

function __dptrain_is
    contains -- (__dptrain_command) $argv
end

function __dptrain_has_spec
    string match -qr '\.ya?ml$' -- (commandline -opc)
end

function __dptrain_is_first
    test (count (commandline -opc)) -eq 1
end

complete -c dptrain -f
complete -c dptrain -l help -d 'print help'
complete -c dptrain -n __dptrain_is_first -l version -d 'print the version'
complete -c dptrain -n __dptrain_is_first -a help -d 'the arguments of a command'
complete -c dptrain -n '__dptrain_is help' -a '@COMMAND_NAMES@'
)";

std::string fish_option(const CommandText& c, const ArgumentText& a, const CompletionWords& all) {
  std::string out = fmt::format("complete -c dptrain -n '__dptrain_is {}'", c.name);
  for (const std::string& name : a.dashed())
    if (name.starts_with("--")) out += " -l " + name.substr(2);
  for (const std::string& name : a.dashed())
    if (!name.starts_with("--")) out += " -s " + name.substr(1);
  const std::vector<std::string> words = words_of(a, all);
  if (!words.empty())
    out += fmt::format(" -x -a {}", fish_quoted(joined(words)));
  else if (!a.flag)
    out += takes_file(a) ? " -r -F" : " -x";
  return out + fmt::format(" -d {}\n", fish_quoted(a.help));
}

std::string fish_argument(const CommandText& c, const ArgumentText& a, const CompletionWords& all) {
  const std::vector<std::string> words = words_of(a, all);
  if (takes_file(a)) return fmt::format("complete -c dptrain -n '__dptrain_is {}' -F\n", c.name);
  if (words.empty()) return "";
  return fmt::format("complete -c dptrain -n '__dptrain_is {}' -a {}\n", c.name,
                     fish_quoted(joined(words)));
}

}  // namespace

std::string bash_completion(const CompletionWords& words) {
  std::string option_values, options, arguments;
  for (const CommandText& c : words.commands) {
    const auto first =
        std::ranges::find_if(c.arguments, [](const ArgumentText& a) { return a.stands_alone(); });
    options += fmt::format("    {}) options={} ;;\n", c.name, in_quotes(joined(options_of(c))));
    if (first != c.arguments.end())
      arguments += fmt::format("    {}) {} ;;\n", c.name, bash_action(*first, words));
    for (const ArgumentText& a : c.arguments)
      if (!a.stands_alone() && !a.flag)
        for (const std::string& name : a.dashed())
          option_values +=
              fmt::format("    '{} {}') {}; return ;;\n", c.name, name, bash_action(a, words));
  }
  const std::vector<std::string> names = names_of(words.commands);
  return filled(kBash, {{"KEYS", joined(assignments(words.keys))},
                        {"VALUES", value_branches(words, "    {key}) values='{values}' ;;\n")},
                        {"COMMANDS", joined(names)},
                        {"COMMAND_PATTERN", joined(names, " | ")},
                        {"OPTION_VALUES", option_values},
                        {"OPTIONS", options},
                        {"ARGUMENTS", arguments}});
}

std::string zsh_completion(const CompletionWords& words) {
  std::string commands = "    'help:the arguments of a command'\n", arguments;
  for (const CommandText& c : words.commands) {
    commands +=
        fmt::format("    {}\n", in_quotes(fmt::format("{}:{}", c.name, zsh_help(c.summary))));
    std::string all = "'--help[print help]'";
    int place = 0;
    for (const ArgumentText& a : c.arguments)
      all += " \\\n      " + zsh_argument(a, a.stands_alone() ? ++place : 0, words);
    arguments += fmt::format("    {}) _arguments {} ;;\n", c.name, all);
  }
  return filled(kZsh, {{"KEYS", joined(assignments(words.keys))},
                       {"VALUES", value_branches(words, "      {key}) values=({values}) ;;\n")},
                       {"COMMANDS", commands},
                       {"DEFAULT_OPTIONS", joined(options_of(words.commands[0]))},
                       {"ARGUMENTS", arguments}});
}

std::string fish_completion(const CompletionWords& words) {
  std::string out = filled(kFish, {{"COMMAND_NAMES", joined(names_of(words.commands))}});
  std::vector<std::string> spec_takers, candidates;
  for (const CommandText& c : words.commands) {
    out += fmt::format("complete -c dptrain -n __dptrain_is_first -a {} -d {}\n", c.name,
                       fish_quoted(c.summary));
    if (c.takes_spec()) spec_takers.emplace_back(c.name);
    for (const ArgumentText& a : c.arguments)
      out += a.stands_alone() ? fish_argument(c, a, words) : fish_option(c, a, words);
  }
  for (const OverrideKey& k : words.keys) {
    candidates.push_back(k.path + "=");
    for (const std::string& value : k.values) candidates.push_back(k.path + "=" + value);
  }
  const std::string takers = joined(spec_takers);
  out += fmt::format(
      "complete -c dptrain -n '__dptrain_is {}; and not __dptrain_has_spec' -k -a "
      "'(__fish_complete_suffix .yaml .yml)'\n",
      takers);
  out += fmt::format("complete -c dptrain -n '__dptrain_is {}; and __dptrain_has_spec' -a {}\n",
                     takers, fish_quoted(joined(candidates)));
  return out;
}

}  // namespace dpt
