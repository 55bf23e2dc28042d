// dptrain SPEC [key=value ...]: trains.
#include <fmt/format.h>

#include "base/fail.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "train/run.h"

namespace dpt::commands {
namespace {

// A set known by its name is found beside the spec, from the working directory, by $DPTRAIN_DATA:
// the run's copy of the spec, which is to run from anywhere, says where it was.
void write_found(const Session& session, Node& tree) {
  if (session.train.found_in.empty()) return;
  const Node path{.kind = Node::Kind::scalar, .text = session.train.found_in, .quoted = true};
  const SourceFile argument{.path = "", .text = "data.dataset.path=" + to_yaml(path)};
  Diagnostics d;
  apply_override(tree, argument, vocabulary(), d);
}

int run_train(const std::vector<std::string>& words) {
  Arguments arguments("train", "Trains what a spec describes; the same as `dptrain SPEC`.");
  SpecArgument argument;
  std::string trace;
  argument.add_to(arguments);
  arguments.text("--trace", trace,
                 "a file for what each worker did when, for chrome://tracing or Perfetto");
  arguments.parse(words);
  const std::optional<World> world = world_from_environment();
  if (world && !trace.empty())
    fail(Fault::spec,
         "--trace is for runs whose ranks dptrain starts itself; start it without torchrun, srun "
         "or mpirun");
  LoadedSpec loaded = load(argument);
  SessionQuery query;
  if (world) query.world = world->size;
  const std::unique_ptr<Session> session = open_session(loaded, query);
  if (session->on_gpu() && !trace.empty())
    fail(Fault::spec, "--trace is of workers on CPUs; for a GPU use nsys, or write `device: cpu`");
  write_found(*session, loaded.tree);
  return run(*session, {.folder = run_folder(loaded.spec),
                        .resolved_spec = to_yaml(loaded.tree),
                        .world = world,
                        .trace = trace});
}

}  // namespace

Command train() { return {"train", "train what a spec describes (the default)", run_train}; }

}  // namespace dpt::commands
