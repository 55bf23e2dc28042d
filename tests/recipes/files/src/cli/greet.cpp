// dptrain greet: prints a greeting.
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"

namespace dpt::commands {
namespace {

int run_greet(const std::vector<std::string>& words) {
  Arguments arguments("greet", "Prints a greeting.");
  arguments.parse(words);
  print_stdout("Hello\n");
  return 0;
}

}  // namespace

Command greet() { return {.name = "greet", .summary = "print a greeting", .run = run_greet}; }

}  // namespace dpt::commands
