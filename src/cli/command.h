// The commands of the command line. One file in cli/ holds one Command; main.cpp hands the words
// over.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dpt {

struct Command {
  std::string_view name, summary;
  // `words` come after the command's name. Returns the exit code; throws Error, BadSpec, HelpShown,
  // BadWords.
  int (*run)(const std::vector<std::string>& words);
};

std::span<const Command> command_table();  // generated from cli/meson.build

// The whole program: finds the command (`train` where none is named), runs it, prints what went
// wrong to standard error, and gives the exit code.
int run_command_line(int argc, char** argv);

}  // namespace dpt
