// dptrain bench SPEC: measures each mode, number of devices, batch size and precision.
#include <algorithm>
#include <atomic>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/simd.h"
#include "backend/cuda/interface/load.h"
#include "base/count.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/signals.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/bench_rows.h"
#include "cli/command.h"
#include "cli/command_texts.h"
#include "cli/measured_row.h"
#include "cli/spec_argument.h"
#include "cli/terminal_text.h"
#include "comm/core_lease.h"
#include "data/dataset.h"
#include "report/report.h"
#include "report/rounds.h"
#include "train/run_directories.h"

namespace dpt::commands {
namespace {

struct BenchArguments {
  SpecArgument spec;
  BenchLists lists;
  BenchSettings settings;
  bool json = false, csv = false;
  std::string svg;
  // If not -1, this process measures one row and reports to this descriptor; see report/measure.h.
  int notes = -1;
};

void declare_bench(Arguments& arguments, BenchArguments& a) {
  arguments.about(
      "Measures the training steps of a spec in several modes: warms up, times each row once per "
      "round,\n"
      "and reports medians over the rounds. Separate list entries by commas; every combination is "
      "a row.\n"
      "`dptrain bench SPEC --compare dp,ddp` shows the speed-up over single at the same batch size "
      "by\n"
      "number of devices. A device has one core, or as many as `cores` in the spec says.\n"
      "The table, CSV and a picture are written to a new run directory as bench.json, bench.csv, "
      "bench.svg.");
  const std::vector<std::string> modes = entry_names("modes");
  std::vector<std::string> compared = modes;
  std::erase(compared, "single");
  a.spec.add_to(arguments);
  arguments.text("--compare LIST", a.lists.compare, {.words = compared, .list = true},
                 "modes to compare with single by number of devices: dp,ddp");
  arguments.text("--modes LIST", a.lists.modes, {.words = modes, .list = true},
                 "without --compare: the modes to measure; default: single,dp,ddp");
  arguments.text("--devices LIST", a.lists.devices, {},
                 "for dp, ddp and pipeline: 1,2; single has one; default: the spec's or the mode's "
                 "own; with --compare: 1,2,4,... up to the machine's cores or GPUs");
  arguments.text("--batch-sizes LIST", a.lists.batch_sizes, {},
                 "global batch sizes, over all devices: 128,512; default: the spec's");
  arguments.text("--precision LIST", a.lists.precisions,
                 {.words = entry_names("precisions"), .list = true},
                 "fp32,...; default: the spec's");
  arguments.number("--rounds N", a.settings.rounds, 1, 1000,
                   "number of times each row is timed; default: 5");
  arguments.number("--seconds N", a.settings.seconds, 0.001, 3600,
                   "seconds that each row is timed per round; default: 1");
  arguments.flag("--json", a.json, "print JSON instead of the table");
  arguments.flag("--csv", a.csv, "print CSV instead of the table", "--json");
  arguments.text("--svg FILE", a.svg, {takes::file}, "also write the picture to this file");
  arguments.hidden("--row", a.notes);
}

// Leases the same cores for all rows and rounds, so that no other run of dptrain uses them. Rows
// with more workers than the machine has cores are not pinned.
CoreLease lease_cores(size_t most) {
  const std::vector<int> allowed = allowed_cores();
  CoreLease lease(allowed, std::min(most, usable_cores().size()));
  if (lease.cores().empty())
    print_stderr(
        "other runs of dptrain use {} of the {} cores: workers are not pinned, and the other runs "
        "affect the measurements\n",
        lease.taken(), allowed.size());
  return lease;
}

// Opens the session of a row. If the data set is missing, uses generated data of the same shapes.
std::unique_ptr<const Session> open_row(const SpecArgument& argument,
                                        const std::vector<std::string>& overrides) {
  try {
    const LoadedSpec loaded = load_with(argument, overrides);
    const Choice& data = loaded.spec.data.dataset;
    const auto& type = *static_cast<const DatasetType*>(data.what);
    try {
      return open_session(loaded, {});
    } catch (const Error& e) {
      if (e.fault() != Fault::data || type.stand_in == nullptr) throw;
    }
    std::vector<std::string> made_up = overrides;
    made_up.push_back(fmt::format("data.dataset={}", type.stand_in(data.settings)));
    return open_session(load_with(argument, made_up),
                        {.data_note = fmt::format(" (generated: {} was not found)", type.name)});
  } catch (const BadSpec& e) {
    throw Error(Fault::spec, e.text);
  }
}

std::string cores_text(size_t n) { return counted(n, "core"); }

std::string machine_line() {
  return fmt::format("{}, {} ({} kernels); {}", cpu_name(), cores_text(usable_cores().size()),
                     simd_kernels().name, version());
}

// Initializes CUDA in this process; no row may be started (forked) after that.
std::string gpu_machine_line() {
  cuda::CudaModule& module = cuda::cuda_module();
  std::map<std::string, int> gpus;
  for (const cuda::DeviceProperties& p : module.devices()) ++gpus[p.name];
  std::vector<std::string> names, versions;
  for (const auto& [name, count] : gpus) names.push_back(fmt::format("{} x {}", count, name));
  std::vector<cuda::LibraryReport> libraries = module.libraries();
  libraries.insert(libraries.begin(), cuda::cuda_library("driver"));
  for (const cuda::LibraryReport& l : libraries)
    if (l.problem.empty()) versions.push_back(fmt::format("{} {}", l.name, l.version));
  return fmt::format("{}; {}; {}, {}; {}", fmt::join(names, ", "), fmt::join(versions, ", "),
                     cpu_name(), cores_text(usable_cores().size()), version());
}

void write_files(const BenchReport& report, const std::string& picture, const std::string& folder,
                 const std::string& svg) {
  constexpr std::string_view kRemedy = "; choose another folder with out=DIR";
  make_folder(folder, "the folder");
  write_text(folder + "/bench.json", bench_json(report), kRemedy);
  write_text(folder + "/bench.csv", bench_csv(report), kRemedy);
  write_text(folder + "/bench.svg", picture, kRemedy);
  write_text(folder + "/report.html", bench_page(bench_json(report), picture), kRemedy);
  if (!svg.empty()) write_text(svg, picture, kRemedy);
  print_stderr("report: {0}/report.html, numbers: {0}/bench.csv, {0}/bench.json\n", folder);
}

// Prints the rows that cannot be run. Returns the exit code of the first of them; 0: there is none.
int say_refused(const BenchReport& report) {
  int code = 0;
  for (const RowResult& r : report.rows) {
    if (r.refused.empty()) continue;
    print_stderr(
        "dptrain: {} was not measured:\n"
        "{}{}",
        name_of(r.row), r.refused, r.refused.ends_with('\n') ? "" : "\n");
    code = code == 0 ? r.refused_code : code;
  }
  return code;
}

size_t most_cores(const RowMaker& maker, const std::vector<BenchRow>& rows) {
  const auto most = std::ranges::max_element(rows, std::ranges::less{}, &BenchRow::devices);
  return static_cast<size_t>(most->devices * maker.cores_per_device());
}

// Shows how far the measurement is: in the status line, or in lines of a log.
class Progress {
 public:
  Progress(size_t rows, int rounds) : rows_(rows), rounds_(rounds) {}
  ~Progress() {
    if (terminal_) write_stderr("\r\x1b[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begins(int round, const BenchRow& row) const {
    if (terminal_)
      write_stderr(fmt::format("\r\x1b[K{} of {} rounds: {}", round, rounds_, name_of(row)));
  }

  // A line for each row, then one for each further round.
  void measured(int round, const BenchRow& row, const Reading& r) {
    if (terminal_) return;
    if (round == 1)
      print_stderr("{}: {:.0f} samples/s (row {} of {}, round 1 of {})\n", name_of(row),
                   static_cast<double>(r.samples) / r.seconds, ++done_, rows_, rounds_);
    else if (round != round_)
      print_stderr("round {} of {}\n", round, rounds_);
    round_ = round;
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  const size_t rows_;
  const int rounds_;
  size_t done_ = 0;
  int round_ = 1;
};

// Measures the rows. Returns the signal that stopped it, or 0.
int measure_rows(const BenchArguments& a, const RowMaker& maker, const std::vector<BenchRow>& rows,
                 BenchReport& out) {
  const CoreLease lease =
      maker.spec().devices.device == "cuda" ? CoreLease() : lease_cores(most_cores(maker, rows));
  const Measure once = [&](const BenchRow& row, const RunSteps& steps) {
    return measure(row, steps, lease.cores(),
                   [&](const BenchRow& r, int notes) { return start_row(a.spec, r, notes); });
  };
  std::atomic<int> stop = 0;
  const StopSignals signals(stop);
  Progress progress(rows.size(), a.settings.rounds);
  out.rows =
      take_turns(rows, a.settings, once,
                 {.begins = [&](int round, const BenchRow& row) { progress.begins(round, row); },
                  .measured = [&](int round, const BenchRow& row,
                                  const Reading& r) { progress.measured(round, row, r); },
                  .stops = [&] { return stop != 0; }});
  return stop;
}

void describe(BenchReport& report) {
  for (const RowResult& r : report.rows)
    if (report.data.empty()) report.data = r.data;
  const bool on_gpus =
      std::ranges::any_of(report.rows, [](const RowResult& r) { return r.facts.gpus > 0; });
  if (on_gpus) report.device = "a GPU";
  report.machine = on_gpus ? gpu_machine_line() : machine_line();
}

int run_bench(BenchArguments& a) {
  a.spec.path = find_spec(a.spec.path);  // said once, not by the process of each row
  if (a.notes >= 0)
    return run_row(a.notes, [&](const auto& overrides) { return open_row(a.spec, overrides); });
  RowMaker maker(a.spec, a.lists);
  const std::vector<BenchRow> rows = maker.rows();
  BenchReport report{.name = maker.spec().name,
                     .device = cores_text(static_cast<size_t>(maker.cores_per_device())),
                     .cores = static_cast<int>(usable_cores().size())};
  const int stopped_by = measure_rows(a, maker, rows, report);
  const int code = say_refused(report);
  if (report.measured().empty()) {
    if (stopped_by != 0) print_stderr("stopped before a row was measured\n");
    return stopped_by != 0 ? exit_code_of(stopped_by) : code;
  }
  describe(report);
  if (a.json)
    print_stdout("{}", bench_json(report));
  else if (a.csv)
    print_stdout("{}", bench_csv(report));
  else
    print_stdout("{}", bench_table(report, text_width()));
  std::fflush(stdout);
  const std::string folder = run_folder(maker.spec());
  Disk disk;
  write_files(report, maker.compares() ? speedup_svg(report) : bench_svg(report),
              maker.spec().out.empty() ? make_next_run(folder, disk) : folder, a.svg);
  if (stopped_by == 0) return 0;
  print_stderr("stopped: measured {} of {}; the first in {} of {} rounds\n",
               report.measured().size(), counted(rows.size(), "row"),
               report.measured().front()->rounds, a.settings.rounds);
  return exit_code_of(stopped_by);
}

}  // namespace

Command bench() {
  return make_command("bench", "measure modes, devices, batch sizes and precisions", declare_bench,
                      run_bench);
}

}  // namespace dpt::commands
