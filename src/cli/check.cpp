// dptrain check SPEC: reports every error in a spec without training.
#include "base/machine.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "checkpoint/model_file.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "train/run_memory.h"
#include "train/warnings.h"

namespace dpt::commands {
namespace {

int run_check(const std::vector<std::string>& words) {
  Arguments arguments("check",
                      "Says everything that is wrong with a spec; exit code 2 if anything is.");
  SpecArgument argument;
  bool syntax = false;
  argument.add_to(arguments);
  arguments.flag("--no-data", syntax, "only the text: don't open the data, don't check shapes");
  arguments.parse(words);
  const LoadedSpec loaded = load(argument);
  if (syntax) {
    print_stderr("{}", render(warnings_of(loaded.spec)));
  } else {
    const auto session = open_session(loaded, {.runs = false, .sizes_only = true});
    check_memory(*session);
    check_initial_weights(*session);
    print_stderr("{}", render(warnings_of(*session, static_cast<int>(usable_cores().size()))));
  }
  print_stdout("{}: ok\n", argument.path);
  return 0;
}

}  // namespace

Command check() { return {"check", "say everything that is wrong with a spec", run_check}; }

}  // namespace dpt::commands
