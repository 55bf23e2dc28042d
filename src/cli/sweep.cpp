// dptrain sweep SPEC key=value,value,...: trains a spec with several values of its keys.
#include <algorithm>
#include <atomic>
#include <numeric>

#include <fmt/format.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/signals.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/version.h"
#include "cli/command.h"
#include "cli/sweep_setup.h"
#include "cli/terminal_text.h"
#include "comm/world.h"
#include "report/metric_text.h"
#include "report/sweep_display.h"
#include "report/sweep_picture.h"
#include "report/sweep_table.h"

namespace dpt::commands {
namespace {

struct Options {
  SweepArguments sweep;
  bool json = false, csv = false, dry_run = false, yes = false;
  std::vector<std::string> words;  // of the command line
};

void declare_sweep(Arguments& arguments, Options& o) {
  arguments.about(
      "Trains a spec once for each combination of values: data.batch_size=32,64 "
      "optimizer.lr=1e-3..1e-1:log:5\ntrains ten runs. A range is LOW..HIGH:log:N, "
      "LOW..HIGH:lin:N, or 1..8 for whole numbers. Runs are\nprocesses, each on cores of its own, "
      "in sweeps/NAME/N. Prints a table, best first, and writes\nsweep.csv, sweep.json and "
      "sweep.html there. The same command continues a sweep that was stopped.");
  SweepArguments& s = o.sweep;
  s.spec.add_to(arguments);
  arguments.number("--seeds N", s.seeds, 1, 1000,
                   "train each combination with seed=0 to N-1; tables show mean and standard "
                   "deviation");
  arguments.text("--jobs N", s.jobs, {.words = {"auto"}},
                 "runs at a time; auto: as many as the machine's cores allow; default: auto");
  arguments.flag("--zip", s.zip,
                 "take the first values of all lists, then the second ones, ..., instead of every "
                 "combination");
  arguments.number("--random N", s.random, 1, 2000,
                   "draw N combinations from the lists and ranges");
  arguments.number("--seed N", s.random_seed, 0, 1'000'000'000, "the seed of --random; default: 0");
  arguments.text("--until METRIC=VALUE", s.until, {takes::limit},
                 "end the sweep when a run reaches this value: test.accuracy=0.88");
  arguments.text("--target METRIC=VALUE", s.target, {takes::limit},
                 "end each run when it reaches this value, and sort by the time that it took");
  arguments.flag("--halving", s.halving,
                 "successive halving: train all for a few epochs, the best of them for more, ...");
  arguments.number("--eta N", s.eta, 2, 100, "--halving keeps one of N; default: 3");
  arguments.text("--metric NAME", s.metric, {takes::metric},
                 "sort by this metric: validation.accuracy, loss, best.test.loss; default: the "
                 "metric of the evaluations");
  arguments.text("-o,--out DIR", s.out, {takes::file},
                 "the sweep's directory; default: the next one in sweeps/NAME");
  arguments.flag("--new", s.anew, "start a new sweep even if there is one to continue");
  arguments.flag("--retry-failed", s.retry_failed, "retry runs that failed");
  arguments.flag("--dry-run", o.dry_run, "print the runs without training them");
  arguments.flag("--yes", o.yes, "train more than 50 runs");
  arguments.flag("--json", o.json, "print sweep.json instead of the table");
  arguments.flag("--csv", o.csv, "print sweep.csv instead of the table", "--json");
  arguments.keep_words(o.words);
}

void refuse_launchers() {
  const std::optional<World> world = world_from_environment();
  if (world && world->size > 1)
    fail(Fault::spec,
         "a sweep starts its runs itself, so {} must start one process, not {}; start it without a "
         "launcher",
         world->launcher, world->size);
}

// A range such as 32..256 may make more runs than were meant. With --random their number is given.
void refuse_many(size_t runs) {
  constexpr size_t kMostUnasked = 50;
  if (runs > kMostUnasked)
    fail(Fault::spec,
         "these values make {} runs; add --yes to train them, or list fewer values; --dry-run "
         "prints the runs",
         runs);
}

std::string machine_line() {
  return fmt::format("{}, {}; {}", cpu_name(), counted(usable_cores().size(), "core"), version());
}

std::string command_line(const std::vector<std::string>& words) {
  std::string out = "dptrain sweep";
  for (const std::string& w : words) {
    const bool plain = w.find_first_of(" \t\n'\"\\$&|;<>()*?[]{}~#!`") == w.npos && !w.empty();
    out += plain ? " " + w : fmt::format(" '{}'", w);
  }
  return out;
}

void print_plan(const SweepSetup& setup) {
  if (!setup.rungs.empty()) print_stderr("halving: {}\n", rungs_text(setup.rungs));
  print_stderr("{}\n", setup.note);
}

// Trains all runs. Returns the signal that stopped it, or 0.
int train_all(SweepSetup& setup) {
  Sweep& sweep = setup.sweep;
  std::atomic<int> stop = 0;
  const StopSignals signals(stop);
  SweepDisplay display(sweep);
  SweepRunner runner(sweep, setup.command, setup.limits, stop,
                     {.began = [&](const SweepRun& r) { display.began(r); },
                      .ended = [&](const SweepRun& r) { display.ended(r); },
                      .changed = [&] { write_manifest(sweep, setup.identity); },
                      .tick = [&] { display.tick(); }});
  if (setup.rungs.empty()) {
    std::vector<size_t> all(sweep.runs.size());
    std::iota(all.begin(), all.end(), size_t{0});
    runner.train(all);
  } else {
    run_halving(sweep, setup.rungs, [&](const std::vector<size_t>& runs, int64_t epochs) {
      runner.train(runs, epochs);
      return stop == 0 && !sweep.is_decided();
    });
  }
  return stop;
}

void write_results(const SweepSetup& setup, const std::string& command) {
  const Sweep& sweep = setup.sweep;
  constexpr std::string_view kRemedy = "; the runs themselves are complete";
  write_manifest(sweep, setup.identity);
  write_text(sweep.folder + "/sweep.csv", sweep_csv(sweep), kRemedy);
  write_text(sweep.folder + "/sweep.html",
             sweep_html(sweep, command, machine_line(), setup.limits.cores), kRemedy);
}

// Prints what the table does not say: which runs failed, and which setting is best.
int say_end(const Sweep& sweep) {
  int failed = 0;
  for (const SweepRun& r : sweep.runs) {
    if (r.state != SweepState::failed) continue;
    print_stderr("failed: {}: {}\n", r.point.name, r.note);
    ++failed;
  }
  if (failed > 0)
    print_stderr("{} failed; their output is in {}/RUN/log.txt; --retry-failed retries them\n",
                 counted(failed, "run"), sweep.folder);
  if (sweep.is_decided()) {
    const auto run = std::ranges::find_if(
        sweep.runs, [&](const SweepRun& r) { return sweep.reached(r) != nullptr; });
    print_stderr("{} reached {} {} in epoch {}, after {:.2f} s of training\n", run->point.name,
                 sweep.target->metric, value_text(sweep.target->metric, sweep.target->value),
                 sweep.reached(*run)->epoch, sweep.reached(*run)->trained_s);
  }
  print_stderr("table and pictures: {0}/sweep.html, numbers: {0}/sweep.csv, {0}/sweep.json\n",
               sweep.folder);
  return failed > 0 ? 1 : 0;
}

int run_sweep(Options& o) {
  o.sweep.spec.path = find_spec(o.sweep.spec.path);
  refuse_launchers();
  SweepSetup setup = set_up_sweep(o.sweep);
  print_plan(setup);
  if (o.dry_run) {
    for (const SweepRun& r : setup.sweep.runs) print_stdout("{}\n", r.point.name);
    return 0;
  }
  if (!o.yes && o.sweep.random == 0) refuse_many(setup.sweep.runs.size());
  const FolderLock lock = open_sweep_folder(setup, o.sweep);
  write_manifest(setup.sweep, setup.identity);
  const int stopped_by = train_all(setup);
  write_results(setup, command_line(o.words));
  if (o.json)
    print_stdout("{}", read_file(setup.sweep.folder + "/sweep.json", size_t{64} << 20));
  else
    print_stdout("{}", o.csv ? sweep_csv(setup.sweep) : sweep_text(setup.sweep, text_width()));
  const int code = say_end(setup.sweep);
  if (stopped_by == 0) return code;
  print_stderr("stopped; the same command continues the sweep:\n  {}\n", command_line(o.words));
  return exit_code_of(stopped_by);
}

}  // namespace

Command sweep() {
  return make_command("sweep", "train with several values of some keys", declare_sweep, run_sweep);
}

}  // namespace dpt::commands
