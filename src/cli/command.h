// The commands of the command line. Each file in cli/ defines one Command; main() calls
// run_command_line().
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

struct Command {
  std::string_view name, summary;
  // `words` are the arguments after the command's name. Returns the exit code; throws Error,
  // BadSpec, HelpShown or BadWords.
  int (*run)(const std::vector<std::string>& words);
};

std::span<const Command> command_table();  // generated from cli/meson.build

// Runs the whole program: finds the command (`train` if none is named), runs it, prints errors to
// standard error, and returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace dpt
