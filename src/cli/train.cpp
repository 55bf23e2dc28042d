// dptrain SPEC [key=value ...]: trains a model.
#include <fmt/format.h>
#include <unistd.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/machine.h"
#include "base/signals.h"
#include "base/stderr.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "train/run.h"
#include "train/warnings.h"

namespace dpt::commands {
namespace {

// Records where the data set was found. A data set given by name is looked up beside the spec, in
// the working directory and in $DPTRAIN_DATA, but the run's copy of the spec must work from
// anywhere.
void write_found(const Session& session, Node& tree) {
  if (session.train.found_in.empty()) return;
  const Node path{.kind = Node::Kind::scalar, .text = session.train.found_in, .quoted = true};
  const SourceFile argument{.path = "", .text = "data.dataset.path=" + to_yaml(path)};
  Diagnostics d;
  apply_override(tree, argument, registries(), d);
}

// Warns if the launcher started a different number of ranks than the spec asks for; the launcher
// wins.
void note_world(const Session& session, const World& world) {
  const auto& asked = session.spec.devices.count;
  const int devices = session.topology.ranks * session.topology.devices_per_rank;
  if (world.rank != 0 || !asked || *asked == devices) return;
  print_stderr("devices: {} in the spec, but {} started {}: training on {}\n", *asked,
               world.launcher, counted(world.size, "rank"), devices);
}

void print_warnings(const Session& session, const std::optional<World>& world) {
  if (world && world->rank != 0) return;
  const bool launched = world && world->size > 1;
  std::optional<int> cores;
  // A launcher may have bound this rank to cores of its own, and the others to others.
  if (!launched || allowed_cores(getppid()) == allowed_cores())
    cores = static_cast<int>(usable_cores().size());
  print_stderr("{}", render(warnings_of(session, cores, launched)));
}

struct TrainArguments {
  SpecArgument spec;
  std::string trace, resume;
};

int train(const TrainArguments& given, const std::optional<World>& world) {
  if (world && !given.trace.empty())
    fail(Fault::spec,
         "--trace is for runs whose ranks dptrain starts itself; start it without torchrun, srun "
         "or mpirun");
  LoadedSpec loaded = load(given.spec);
  SessionQuery query;
  if (world) query.world = world->size;
  const std::unique_ptr<Session> session = open_session(loaded, query);
  if (session->on_gpu() && !given.trace.empty())
    fail(Fault::spec, "--trace is of workers on CPUs; for a GPU use nsys, or write `device: cpu`");
  RunIdentity identity = make_run_identity();
  if (!world || world->rank == 0) print_stderr("{}", first_line(identity));
  if (world) note_world(*session, *world);
  print_warnings(*session, world);
  write_found(*session, loaded.tree);
  return run(*session, {.location = {.folder = run_folder(loaded.spec),
                                     .numbered = loaded.spec.out.empty(),
                                     .resume = given.resume,
                                     .resolved_spec = to_yaml(loaded.tree)},
                        .identity = std::move(identity),
                        .world = world,
                        .trace = given.trace});
}

// Trains as one of several ranks and tells the others why it failed. What rank 0 reports, the other
// ranks don't repeat.
int train_as_rank(const TrainArguments& given, const World& world) {
  constexpr double kPatience = 10;  // seconds; the other ranks may still be reading data
  const auto report = [&](std::string_view prefix, const std::string& text) {
    const auto print = [&] { print_stderr("{}{}", prefix, text); };
    if (world.rank == 0) print();  // at once: the others may arrive late
    const std::string why = text.substr(0, text.find('\n'));
    const bool reported = tell_early_failure(world, why, {.timeout_s = kPatience});
    if (world.rank != 0 && !reported) print();
  };
  try {
    return train(given, world);
  } catch (const BadSpec& e) {
    report("", e.text);
    return static_cast<int>(Fault::spec);
  } catch (const Error& e) {
    if (e.fault() == Fault::rank) throw;  // the others know, or have gone
    report("dptrain: ", e.report() + "\n");
    return static_cast<int>(e.fault());
  }
}

int run_train(const std::vector<std::string>& words) {
  Arguments arguments("train", "Trains what a spec describes; the same as `dptrain SPEC`.");
  TrainArguments given;
  given.spec.add_to(arguments);
  arguments.text(
      "--resume PATH", given.resume,
      "resume from a checkpoint, from the newest one of a run directory or, with 'auto', "
      "of this spec's newest run, if it has the same spec");
  arguments.text("--trace FILE", given.trace,
                 "a file for what each worker did when, for chrome://tracing or Perfetto");
  arguments.parse(words);
  const StartupSignals signals;
  const std::optional<World> world = world_from_environment();
  return world && world->size > 1 ? train_as_rank(given, *world) : train(given, world);
}

}  // namespace

Command train() {
  return {
      .name = "train", .summary = "train what a spec describes (the default)", .run = run_train};
}

}  // namespace dpt::commands
