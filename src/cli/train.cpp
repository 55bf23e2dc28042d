// dptrain SPEC [key=value ...]: trains.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/spec_argument.h"
#include "train/run.h"

namespace dpt::commands {
namespace {

int run_train(const std::vector<std::string>& words) {
  CLI::App app("Trains what a spec describes; the same as `dptrain SPEC`.", "dptrain train");
  SpecArgument argument;
  argument.add_to(app);
  parse(app, words);
  const std::optional<World> world = world_from_environment();
  const LoadedSpec loaded = load(argument);
  SessionQuery query;
  if (world) query.world = world->size;
  const std::unique_ptr<Session> session = open_session(loaded, query);
  return run(*session, {run_folder(loaded.spec), to_yaml(loaded.tree), world});
}

}  // namespace

Command train() { return {"train", "train what a spec describes (the default)", run_train}; }

}  // namespace dpt::commands
