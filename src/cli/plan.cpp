// dptrain plan SPEC: what a run would do, step by step, and what it would need; nothing is run.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/spec_argument.h"
#include "train/describe.h"

namespace dpt::commands {
namespace {

int run_plan(const std::vector<std::string>& words) {
  CLI::App app("Prints shapes, parameters, FLOPs, memory, and the steps of a run; runs nothing.",
               "dptrain plan");
  SpecArgument argument;
  bool verbose = false;
  argument.add_to(app);
  app.add_flag("-v,--verbose", verbose, "also why kernels ahead of the chosen ones were refused");
  parse(app, words);
  const LoadedSpec loaded = load(argument);
  fmt::print("{}", describe(*open_session(loaded, {}), verbose));
  return 0;
}

}  // namespace

Command plan() { return {"plan", "print what a run would do; run nothing", run_plan}; }

}  // namespace dpt::commands
