// dptrain plan SPEC: what a run would do, step by step, and what it would need; nothing is run.
#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "train/describe.h"

namespace dpt::commands {
namespace {

int run_plan(const std::vector<std::string>& words) {
  Arguments arguments(
      "plan", "Prints shapes, parameters, FLOPs, memory, and the steps of a run; runs nothing.");
  SpecArgument argument;
  bool verbose = false;
  argument.add_to(arguments);
  arguments.flag("-v,--verbose", verbose, "also why kernels ahead of the chosen ones were refused");
  arguments.parse(words);
  const LoadedSpec loaded = load(argument);
  fmt::print("{}", describe(*open_session(loaded, {}), verbose));
  return 0;
}

}  // namespace

Command plan() { return {"plan", "print what a run would do; run nothing", run_plan}; }

}  // namespace dpt::commands
