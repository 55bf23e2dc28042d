// dptrain SPEC [key=value ...]: trains a model.
#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "backend/cpu/kernels.h"
#include "base/count.h"
#include "base/fail.h"
#include "base/machine.h"
#include "base/sha256.h"
#include "base/signals.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/version.h"
#include "checkpoint/resume.h"
#include "cli/arguments.h"
#include "cli/auto_batch.h"
#include "cli/command.h"
#include "cli/printed_numbers.h"
#include "cli/reported_training.h"
#include "cli/spec_argument.h"
#include "comm/hosts/hosts.h"
#include "session/run_precision.h"
#include "spec/tree.h"
#include "train/run.h"
#include "train/run_data.h"
#include "train/run_directories.h"
#include "train/run_numbers.h"
#include "train/warnings.h"

namespace dpt::commands {
namespace {

// Records where the data set was found. A data set given by name is looked up beside the spec, in
// the working directory and in $DPTRAIN_DATA, but the run's copy of the spec must work from
// anywhere.
void write_found(const SessionData& data, Node& tree) {
  if (data.train.found_in.empty()) return;
  const Node path{.kind = Node::Kind::scalar, .text = data.train.found_in, .quoted = true};
  const SourceFile argument{.path = "", .text = "data.dataset.path=" + to_yaml(path)};
  Diagnostics d;
  apply_override(tree, argument, registries(), d);
}

// A launcher's number of ranks decides on the devices, and the run's copy of the spec says so. A
// list of GPUs stays as it is.
void write_devices(const Session& session, Node& tree) {
  const Topology& t = session.devices.topology;
  const Spec& spec = session.settings.spec;
  if (!spec.devices.indices.empty()) return;
  const bool own = session.settings.mode->devices &&
                   session.settings.mode->devices(spec.parallel.settings).has_value();
  const SourceFile argument{.path = "",
                            .text = fmt::format("{}={}", own ? "parallel.devices" : "devices",
                                                t.ranks * t.devices_per_rank)};
  Diagnostics d;
  apply_override(tree, argument, registries(), d);
}

// Warns if the launcher started a different number of ranks than the spec asks for; the launcher
// wins.
void note_world(const Spec& spec, const Devices& devices, const World& world) {
  const auto& asked = spec.devices.count;
  const int used = devices.topology.ranks * devices.topology.devices_per_rank;
  if (world.rank != 0 || !asked || *asked == used) return;
  print_note("devices: {} in the spec, but {} started {}: training on {}\n", *asked, world.launcher,
             counted(world.size, "rank"), used);
}

bool launched(const std::optional<World>& world) { return world && world->size > 1; }

// The cores that all ranks of this machine may use. A launcher may have bound this rank to cores of
// its own, and the others to others.
int cores_of_ranks(const std::optional<World>& world) {
  const size_t own = usable_cores().size();
  return static_cast<int>(launched(world) ? std::max(own, allowed_cores(getppid()).size()) : own);
}

void print_warnings(const Session& session, const std::optional<World>& world) {
  if (world && world->rank != 0) return;
  print_stderr("{}", render(warnings_of(session, cores_of_ranks(world), launched(world))));
}

struct TrainArguments {
  SpecArgument spec;
  std::string trace, resume, print;
  bool json = false, quiet = false;
  bool prints_result() const { return json || !print.empty(); }
};

// What --print or --json print after a run. A run that failed or was stopped has no number to
// print, so that `x=$(dptrain ...)` is empty; --json says how far it came.
void print_result(const TrainArguments& given, const std::vector<std::string>& names,
                  const Spec& spec, const std::string& folder, int code) {
  print_results_on_stderr(false);
  if (given.json)
    print_stdout(
        "{}", numbers_json(read_numbers(folder), spec, folder, code == 0 ? "finished" : "stopped"));
  else if (code == 0)
    print_stdout("{}", printed_line(names, folder));
}

// What the hosts of a run must have in common. Their files may be in different folders.
HostIdentity identity_of(const LoadedSpec& loaded, const std::string& resume) {
  Node tree = loaded.tree;
  clear_paths(tree, registries());
  erase_key(tree, "out");  // host 0 writes
  // The weights' run decides how a table is read.
  const std::optional<SampleForm> fitted = form_of_weights(loaded.spec);
  return {.version = version(),
          .spec = Sha256()
                      .update(to_yaml(tree))
                      .update(resume)
                      .update(fitted ? to_json(*fitted) : "")
                      .hex(),
          .reproducible = loaded.spec.reproducible_shards.has_value(),
          .instructions = instructions_for_products(loaded.spec),
          .onednn = onednn_version(),
          .failure = ""};
}

// The hosts of a run on several.
struct Hosts {
  std::unique_ptr<RunHosts> joined;  // null: they have not connected yet
  bool failed = false;               // they could not; the ranks of this host know
};

// What a run that --resume names was fitted to; empty: not known.
std::optional<SampleForm> resumed_form(const Spec& spec, const std::string& resume) {
  if (resume != "auto") return form_of_run(is_checkpoint(resume) ? resume : newest_run(resume));
  return form_of_run(spec.out.empty() ? newest_run(run_folder(spec)) : run_folder(spec));
}

std::string resolved_spec(const Session& session, Node tree, const std::optional<World>& world) {
  write_found(session.data, tree);
  if (world) write_devices(session, tree);
  return to_yaml(tree);
}

// A resumed run reads its data by what it was fitted to, so that its weights fit whatever the files
// hold now; so does one that starts from the weights of a run on a table. `--resume auto` may start
// a new run instead, which is fitted anew.
std::unique_ptr<const Session> open_training(const LoadedSpec& loaded, SessionQuery query,
                                             const std::string& resume,
                                             const std::optional<World>& world) {
  const std::optional<SampleForm> form =
      resume.empty() ? std::nullopt : resumed_form(loaded.spec, resume);
  if (form && resume != "auto") query.fitted = &*form;
  std::unique_ptr<const Session> session = open_session(loaded, query);
  if (!form) {
    const auto trained = form_of_weights(loaded.spec);
    if (!trained) return session;
    const SampleForm own = form_of(session->data.train);
    if (!same_columns(*trained, own) || same_fit(*trained, own)) return session;
    if (!world || world->rank == 0)
      print_note("the table is read with the means and categories of the run that wrote {}\n",
                 loaded.spec.initial_weights);
    session.reset();
    query.fitted = &*trained;
    return open_session(loaded, query);
  }
  if (query.fitted || same_fit(*form, form_of(session->data.train))) return session;
  const bool numbered = loaded.spec.out.empty();
  const std::string base = run_folder(loaded.spec);
  std::string why;
  if (!find_resume(resume, numbered ? newest_run(base) : base, *session,
                   resolved_spec(*session, loaded.tree, world), why,
                   numbered ? Match::same_spec : Match::fits))
    return session;
  session.reset();
  query.fitted = &*form;
  return open_session(loaded, query);
}

int train(const TrainArguments& given, const std::optional<World>& world, Hosts& hosts) {
  if (world && !given.trace.empty())
    fail(Fault::spec,
         "--trace is for runs whose ranks dptrain starts itself; start it without torchrun, srun "
         "or mpirun");
  LoadedSpec loaded = with_chosen_batch(load(given.spec), given.spec, given.resume, world);
  SessionQuery query;
  if (world) query.world = world->size;
  if (world && world->has_several_hosts()) {
    try {
      hosts.joined = std::make_unique<RunHosts>(*world, identity_of(loaded, given.resume),
                                                timeout_of(loaded.spec));
    } catch (const TeamBroken&) {  // another rank prints why
      return static_cast<int>(Fault::rank);
    } catch (const Error&) {
      hosts.failed = true;
      throw;
    }
    query.hosts = hosts.joined->layout();
  }
  const std::unique_ptr<const Session> session = open_training(loaded, query, given.resume, world);
  if (session->devices.on_gpu() && !given.trace.empty())
    fail(Fault::spec,
         "--trace records CPU workers only; for a GPU use nsys, or write `device: cpu`");
  std::vector<std::string> names;
  if (!given.print.empty()) names = read_printed_names(given.print, session->settings.spec);
  if (given.prints_result()) print_results_on_stderr(true);
  RunIdentity identity = make_run_identity();
  if (!world || world->rank == 0) print_note("{}", first_line(identity));
  if (world) note_world(session->settings.spec, session->devices, *world);
  print_warnings(*session, world);
  std::string folder;
  const int code = run_and_report(
      *session,
      {.location = {.folder = run_folder(loaded.spec),
                    .numbered = loaded.spec.out.empty(),
                    .resume = given.resume,
                    .resolved_spec = resolved_spec(*session, std::move(loaded.tree), world)},
       .identity = std::move(identity),
       .world = world,
       .hosts = hosts.joined.get(),
       .cpus = cores_of_ranks(world),
       .trace = given.trace},
      folder);
  const bool stopped = code == 75 || code > 128;
  if (given.prints_result() && (!world || world->rank == 0) && (code == 0 || stopped))
    print_result(given, names, session->settings.spec, folder, code);
  return code;
}

// Tells the ranks that have not failed why this one has. Returns whether rank 0 reports it.
bool tell_others(const World& world, const std::string& why, const Hosts& hosts) {
  constexpr double kPatience = 10;  // seconds; the other ranks may still be reading data
  const bool before_hosts = world.has_several_hosts() && !hosts.joined;
  const World local = before_hosts ? RunHosts::before_run(world) : local_world(world);
  const bool reported =
      !hosts.failed && tell_early_failure(local, why, {.timeout_s = kPatience, .directory = {}});
  if (!before_hosts || local.rank != 0) return reported;
  HostsSettings settings;
  settings.gathering.timeout_s = kPatience;
  try {
    return tell_hosts_of_failure(world, why, trust_from_environment(), settings);
  } catch (const Error&) {  // the secret is what is wrong, so no host would believe this one
    return false;
  }
}

// Trains as one of several ranks and tells the others why it failed. What rank 0 reports, the other
// ranks don't repeat.
int train_as_rank(const TrainArguments& given, const World& world) {
  Hosts hosts;
  const auto report = [&](std::string_view prefix, const std::string& text) {
    const auto print = [&] { print_stderr("{}{}", prefix, text); };
    if (world.rank == 0) print();  // at once: the others may arrive late
    const std::string why = text.substr(0, text.find('\n'));
    if (hosts.joined) hosts.joined->give_up(why);
    const bool reported = tell_others(world, why, hosts);
    if (world.rank != 0 && !reported) print();
  };
  try {
    return train(given, world, hosts);
  } catch (const BadSpec& e) {
    report("", e.text);
    return static_cast<int>(Fault::spec);
  } catch (const Error& e) {
    if (e.fault() == Fault::rank) {  // the ranks of this host know, or have gone
      if (hosts.joined) hosts.joined->give_up(e.what());
      throw;
    }
    report("dptrain: ", e.report() + "\n");
    return static_cast<int>(e.fault());
  }
}

void declare_train(Arguments& arguments, TrainArguments& given) {
  arguments.about("Trains what a spec describes; the same as `dptrain SPEC`.");
  given.spec.add_to(arguments);
  arguments.text("--resume PATH", given.resume, {takes::file, {"auto"}},
                 "checkpoint to resume from, or a run directory for its newest checkpoint, or "
                 "'auto' for this spec's newest run if its spec is unchanged");
  arguments.text("--trace FILE", given.trace, {takes::file},
                 "write a timeline of each worker to this file, for chrome://tracing or Perfetto");
  arguments.text("--print,--numbers LIST", given.print, {takes::number, {}, true},
                 "numbers to print on standard output instead of the epochs' lines: "
                 "test.accuracy, loss,seconds, best.test.accuracy, weights.sha256, out, ...");
  arguments.flag("--json", given.json,
                 "print a summary as JSON on standard output instead of the epochs' lines",
                 "--print");
  arguments.flag("--quiet", given.quiet,
                 "print results, warnings and errors only: no head, no progress, no files");
}

int run_train(TrainArguments& given) {
  if (given.quiet) silence_notes();
  const StartupSignals signals;
  const std::optional<World> world = world_from_environment();
  if (world && world->size > 1) return train_as_rank(given, *world);
  Hosts none;
  return train(given, world, none);
}

}  // namespace

Command train() {
  return make_command("train", "train what a spec describes (the default)", declare_train,
                      run_train);
}

}  // namespace dpt::commands
