// dptrain greet: prints a greeting.
#include "base/stdout.h"
#include "cli/command.h"

namespace dpt::commands {
namespace {

void declare_greet(Arguments& arguments, NoArguments&) { arguments.about("Prints a greeting."); }

int run_greet(NoArguments&) {
  print_stdout("Hello\n");
  return 0;
}

}  // namespace

Command greet() { return make_command("greet", "print a greeting", declare_greet, run_greet); }

}  // namespace dpt::commands
