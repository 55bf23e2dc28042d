// The commands of the command line. Each file in cli/ defines one Command; main() calls
// run_command_line().
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "cli/arguments.h"

namespace dpt {

struct Command {
  std::string_view name, summary;
  // Declares the command's arguments. Returns the function that runs the command with the values
  // that Arguments::parse() read; it returns the exit code, and throws Error, BadSpec or BadWords.
  std::function<std::function<int()>(Arguments&)> declare;
};

// A command whose arguments have these values.
template <class Values>
Command make_command(std::string_view name, std::string_view summary,
                     void (*declare)(Arguments&, Values&), int (*run)(Values&)) {
  return {name, summary, [declare, run](Arguments& arguments) {
            const auto values = std::make_shared<Values>();
            declare(arguments, *values);
            return [run, values] { return run(*values); };
          }};
}

struct NoArguments {};

std::span<const Command> command_table();  // generated from cli/meson.build

// Runs the whole program: finds the command (`train` if none is named), runs it, prints errors to
// standard error, and returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace dpt
