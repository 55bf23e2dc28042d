#include "cli/command.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/stack.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/version.h"
#include "base/wrap.h"
#include "cli/arguments.h"
#include "cli/command_texts.h"
#include "cli/completer.h"
#include "cli/help_text.h"
#include "cli/spec_argument.h"

namespace dpt {
namespace {

int help() {
  const size_t width = help_width();
  HelpEntries commands, variables;
  for (const Command& c : command_table()) commands.emplace_back(c.name, c.summary);
  commands.emplace_back("help COMMAND", "the arguments of a command, as `dptrain COMMAND --help`");
  commands.emplace_back("--version", "the version");
  for (const Meaning& m : environment_variables()) variables.emplace_back(m.name, m.text);
  std::string codes = "Exit codes:";
  for (const Meaning& m : exit_codes())
    codes += fmt::format(" {} {}{}", m.name, m.text, &m == &exit_codes().back() ? "." : ",");
  print_stdout(
      "{}\n{}\nCommands (dptrain COMMAND ...):\n{}\nEnvironment variables:\n{}\n{}",
      wrapped("dptrain trains neural networks described in one YAML file and reproduces PyTorch's "
              "results.",
              width),
      entries_text(
          {{"dptrain SPEC [key=value ...]", "train; `dptrain configs/fmnist_ddp.yaml epochs=3`"}},
          width),
      entries_text(commands, width), entries_text(variables, width), wrapped(codes, width));
  return 0;
}

// A word counts as a command if no file has this name and it does not look like a path.
bool is_meant_as_command(const std::string& word) {
  std::error_code ignored;
  return word.find_first_of("./=") == word.npos && !word.starts_with('-') &&
         !std::filesystem::exists(word, ignored);
}

BadSpec unknown_command(const std::string& word) {
  std::vector<std::string_view> known;
  for (const Command& c : command_table()) known.push_back(c.name);
  std::error_code ignored;
  const bool is_spec = std::filesystem::exists(word + ".yaml", ignored);
  return {fmt::format(
      "dptrain: unknown command '{:.60}'; {}\n", word,
      is_spec ? fmt::format("did you mean '{}.yaml'?", word) : suggestion(word, known))};
}

int dispatch(const std::vector<std::string>& words) {
  const bool asks_help =
      words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help";
  const bool of_command = asks_help && words.size() > 1 && !words[1].starts_with('-');
  if (of_command && words[1] != "help") return dispatch({words[1], "--help"});
  if (asks_help) return help();
  if (words[0] == "--version" || words[0] == "version") {
    print_stdout("{}\n", version());
    return 0;
  }
  if (words[0] == "__complete") {
    print_stdout("{}", completions({words.begin() + 1, words.end()}));
    return 0;
  }
  const auto command = std::ranges::find(command_table(), words[0], &Command::name);
  const bool named = command != command_table().end();
  if (!named && !words[0].empty() && is_meant_as_command(words[0])) throw unknown_command(words[0]);
  const Command& chosen = named ? *command : command_table()[0];
  try {
    Arguments arguments(chosen.name);
    const std::function<int()> run = chosen.declare(arguments);
    arguments.parse({words.begin() + (named ? 1 : 0), words.end()});
    return run();
  } catch (BadWords& e) {
    e.command = chosen.name;
    throw;
  }
}

// If the caller closed a standard descriptor (`>&-`), the next opened file would get its number,
// and metrics.jsonl, for example, would receive the program's output.
void open_standard_files() {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd)
    if (fcntl(fd, F_GETFD) == -1)
      open("/dev/null", O_RDWR);  // takes the lowest number that is free
}

int out_of_memory() {
  print_stderr(
      "dptrain: out of memory; use a smaller batch, smaller sizes or a smaller model, or a machine "
      "with more memory\n");
  return static_cast<int>(Fault::memory);
}

}  // namespace

int run_command_line(int argc, char** argv) {
  open_standard_files();
  // Exceeding the file size limit makes write() fail with EFBIG instead.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    prepare_stacks();
    const int code = dispatch({argv + 1, argv + argc});
    if (code == 0) flush_output();
    return code;
  } catch (const HelpShown&) {
    return 0;
  } catch (const BadWords& e) {
    print_stderr("dptrain: {}; see `dptrain {} --help`\n", e.text, e.command);
    return static_cast<int>(Fault::spec);
  } catch (const BadSpec& e) {
    print_stderr("{}", e.text);
    return static_cast<int>(Fault::spec);
  } catch (const Error& e) {
    print_stderr("dptrain: {}\n", e.report());
    return static_cast<int>(e.fault());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::length_error&) {  // a container too large for any memory
    return out_of_memory();
  } catch (const std::exception& e) {
    const std::string_view where = std::ferror(stdout) ? "standard output: " : "";
    print_stderr("dptrain: {}{}\n", where, e.what());
    return static_cast<int>(Fault::failed);
  }
}

}  // namespace dpt
