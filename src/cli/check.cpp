// dptrain check SPEC: finds everything that is wrong with a spec, and trains nothing.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/spec_argument.h"

namespace dpt::commands {
namespace {

int run_check(const std::vector<std::string>& words) {
  CLI::App app("Says everything that is wrong with a spec; exit code 2 if anything is.",
               "dptrain check");
  SpecArgument argument;
  bool syntax = false;
  argument.add_to(app);
  app.add_flag("--no-data", syntax, "only the text: don't open the data, don't check shapes");
  parse(app, words);
  const LoadedSpec loaded = load(argument);
  if (!syntax) open_session(loaded, {});
  fmt::print("{}: ok\n", argument.path);
  return 0;
}

}  // namespace

Command check() { return {"check", "say everything that is wrong with a spec", run_check}; }

}  // namespace dpt::commands
