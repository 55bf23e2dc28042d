// dptrain bench SPEC: how fast each mode, number of devices, batch size and precision is, and why.
#include <algorithm>
#include <map>
#include <set>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/simd.h"
#include "backend/cuda/load.h"
#include "base/count.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/version.h"
#include "bench/reasons.h"
#include "bench/report.h"
#include "bench/rounds.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "comm/child.h"
#include "comm/core_lease.h"
#include "data/dataset.h"
#include "layers/model.h"
#include "parallel/mode.h"
#include "train/run_directories.h"

namespace dpt::commands {
namespace {

struct BenchArguments {
  SpecArgument spec;
  std::string modes = "single,dp,ddp", devices, batch_sizes, precisions;
  BenchSettings settings;
  bool json = false, csv = false;
  std::string svg;
  int notes = -1;  // this is the process of one row; see bench/measure.h
};

BenchArguments read_words(const std::vector<std::string>& words) {
  Arguments arguments(
      "bench",
      "Measures the training steps of a spec in several modes: warm-up, then rounds in which the "
      "rows\ntake turns, medians over the rounds. Lists are separated by commas; every combination "
      "is a row.\nThe table, CSV and a picture are written to a new run directory as bench.json, "
      "bench.csv, bench.svg.");
  BenchArguments a;
  a.spec.add_to(arguments);
  arguments.text("--modes LIST", a.modes, "default: single,dp,ddp");
  arguments.text(
      "--devices LIST", a.devices,
      "for dp and ddp: 1,2; single has one, a pipeline its stages; default: the spec's or the "
      "mode's own");
  arguments.text("--batch-sizes LIST", a.batch_sizes,
                 "of all devices together: 128,512; default: the spec's");
  arguments.text("--precision LIST", a.precisions, "fp32,...; default: the spec's");
  arguments.number("--rounds N", a.settings.rounds, 1, 1000,
                   "how often each row is timed; default: 5");
  arguments.number("--seconds N", a.settings.seconds, 0.001, 3600,
                   "that a row is timed for in a round; default: 1");
  arguments.flag("--json", a.json, "print JSON in place of the table");
  arguments.flag("--csv", a.csv, "print CSV in place of the table", "--json");
  arguments.text("--svg FILE", a.svg, "where the picture is written, too");
  arguments.hidden("--row", a.notes);
  arguments.parse(words);
  return a;
}

// "128,512"; `fallback` where nothing was given.
std::vector<std::string> split(std::string_view option, const std::string& text,
                               std::vector<std::string> fallback) {
  if (text.empty()) return fallback;
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    if (out.back().empty() || !seen.insert(out.back()).second)
      throw BadSpec{fmt::format(
          "dptrain: {} '{}' {}; write values separated by commas, each once\n", option, text,
          out.back().empty() ? "has an empty entry" : "names '" + out.back() + "' twice")};
    begin = end + 1;
  }
  return out;
}

LoadedSpec load_with(const SpecArgument& argument, const std::vector<std::string>& more) {
  SpecArgument a = argument;
  a.overrides.insert(a.overrides.end(), more.begin(), more.end());
  return load(a);
}

// As many as the mode takes where the spec does not say, or says it of another mode.
Topology topology_of(const Spec& spec) {
  const auto& mode = *static_cast<const ModeType*>(spec.parallel.what);
  ModeQuery query{.machine_cores = static_cast<int>(usable_cores().size()),
                  .span = devices_of(spec.model)};
  if (const auto devices = devices_asked(spec.parallel, spec.devices.count))
    query.devices = static_cast<int>(*devices);
  return mode.topology(spec.parallel.settings, query);
}
int64_t devices_of(const Spec& spec) {
  const Topology who = topology_of(spec);
  return int64_t{who.ranks} * who.devices;
}

class RowMaker {
 public:
  explicit RowMaker(const BenchArguments& a) : arguments_(a), base_(load(a.spec).spec) {}

  std::vector<BenchRow> rows() {
    const auto batches = split("--batch-sizes", arguments_.batch_sizes, {own_batch()});
    const auto precisions =
        split("--precision", arguments_.precisions, {std::string(base_.precision.what->name)});
    const auto modes = split("--modes", arguments_.modes, {});
    const auto devices = split("--devices", arguments_.devices, {own_devices()});
    std::vector<BenchRow> out;
    for (const std::string& batch : batches)
      for (const std::string& precision : precisions)
        for (const std::string& mode : modes)
          for (const std::string& count : counts(mode, devices))
            out.push_back(row(mode, count, batch, precision));
    share_cores(out);
    return out;
  }

  const Spec& spec() const { return base_; }
  int64_t cores_per_device() const { return cores_; }
  size_t most_cores() const { return static_cast<size_t>(most_devices_ * cores_); }

 private:
  // Of devices: a single one's and a pipeline's number is not what --devices says.
  std::vector<std::string> counts(std::string_view mode,
                                  const std::vector<std::string>& devices) const {
    if (mode == "single") return {std::to_string(devices_of(base_.model))};
    return mode == "pipeline" ? std::vector<std::string>{""} : devices;
  }

  // What `parallel: {ddp: 2}` of the spec says for all modes; empty: it does not.
  std::string own_devices() const {
    const auto& mode = *static_cast<const ModeType*>(base_.parallel.what);
    const auto own =
        mode.devices ? mode.devices(base_.parallel.settings) : std::optional<int64_t>{};
    return own ? std::to_string(*own) : "";
  }

  std::string own_batch() const {
    const DataSpec& data = base_.data;
    return std::to_string(data.batch_size ? *data.batch_size
                                          : *data.batch_size_per_replica *
                                                topology_of(base_).replicas() * base_.accumulate);
  }

  // What is wrong with a value is found by the language, at the place of its override.
  BenchRow row(const std::string& mode, const std::string& devices, const std::string& batch,
               const std::string& precision) const {
    std::vector<std::string> overrides = {"evaluate=false", "data.batch_size=" + batch};
    if (precision != base_.precision.what->name) overrides.push_back("precision=" + precision);
    if (mode != base_.parallel.what->name)
      overrides.push_back("parallel=" + mode);
    else if (!own_devices().empty())  // it says the same as --devices
      overrides.push_back(fmt::format("parallel.{}=null", kDevicesKey));
    if (!devices.empty()) overrides.push_back("devices=" + devices);
    Spec spec = load_with(arguments_.spec, overrides).spec;
    if (devices.empty() && (spec.devices.count == 1 || mode == "pipeline"))
      spec.devices.count.reset();  // of `single`, or of another mode
    const int64_t count = devices_of(spec);
    if (devices.empty()) overrides.push_back(fmt::format("devices={}", count));
    return {.mode = mode,
            .devices = count,
            .batch_size = *spec.data.batch_size,
            .precision = std::string(spec.precision.what->name),
            .overrides = overrides};
  }

  // A device is the same in all rows, or their comparison would be of something else.
  void share_cores(std::vector<BenchRow>& rows) {
    for (const BenchRow& r : rows) most_devices_ = std::max(most_devices_, r.devices);
    const auto machine = static_cast<int64_t>(usable_cores().size());
    cores_ = base_.devices.cores.value_or(std::max<int64_t>(1, machine / most_devices_));
    for (BenchRow& r : rows) r.overrides.push_back(fmt::format("cores={}", cores_));
  }

  const BenchArguments& arguments_;
  Spec base_;
  int64_t cores_ = 1, most_devices_ = 1;
};

// The same cores for all rows and rounds, which no other run of dptrain has meanwhile. Of rows that
// have more workers than the machine has cores none is pinned.
CoreLease lease_cores(size_t most) {
  const std::vector<int> allowed = allowed_cores();
  CoreLease lease(allowed, std::min(most, usable_cores().size()));
  if (lease.cores().empty())
    print_stderr(
        "other runs of dptrain use {} of the {} cores: workers are not pinned, and the figures are "
        "those of a machine that does other work, too\n",
        lease.taken(), allowed.size());
  return lease;
}

// The session of a row; without its data, on a made-up set of the same shapes.
std::unique_ptr<Session> open_row(const SpecArgument& argument,
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
    std::unique_ptr<Session> session = open_session(load_with(argument, made_up), {});
    session->train.description += fmt::format(" (made up: there is no {} here)", type.name);
    return session;
  } catch (const BadSpec& e) {
    throw Error(Fault::spec, e.text);
  }
}

// The same program again, with the row's overrides.
int start_row(const SpecArgument& spec, const BenchRow& row, int notes) {
  std::vector<std::string> words = {"dptrain", "bench", spec.path, "--row", std::to_string(notes)};
  words.insert(words.end(), spec.overrides.begin(), spec.overrides.end());
  words.insert(words.end(), row.overrides.begin(), row.overrides.end());
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  return run_in_child([&] {
    fcntl(notes, F_SETFD, 0);
    execv("/proc/self/exe", arguments.data());
    return static_cast<int>(Fault::failed);
  });
}

std::string cores_text(size_t n) { return counted(n, "core"); }

std::string machine_line() {
  return fmt::format("{}, {} ({} kernels); {}", cpu_name(), cores_text(usable_cores().size()),
                     simd_kernels().name, version());
}

// Starts CUDA in this process, which must not start rows after that.
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

void write_files(const BenchReport& report, const std::string& folder, const std::string& svg) {
  constexpr std::string_view kRemedy = "; choose another folder with out=DIR";
  make_folder(folder, "the folder");
  write_text(folder + "/bench.json", bench_json(report), kRemedy);
  write_text(folder + "/bench.csv", bench_csv(report), kRemedy);
  const std::string picture = bench_svg(report);
  write_text(folder + "/bench.svg", picture, kRemedy);
  if (!svg.empty()) write_text(svg, picture, kRemedy);
  print_stderr("the same as JSON, CSV and a picture: {}/bench.json, .csv, .svg\n", folder);
}

// Rows that can't be run; the exit code where no row could.
int say_refused(const BenchReport& report) {
  int code = 0, refused = 0;
  for (const RowResult& r : report.rows) {
    if (r.refused.empty()) continue;
    print_stderr("dptrain: {} is left out:\n{}{}", name_of(r.row), r.refused,
                 r.refused.ends_with('\n') ? "" : "\n");
    code = code == 0 ? r.refused_code : code;
    ++refused;
  }
  return refused == std::ssize(report.rows) ? code : 0;
}

int run_bench(const std::vector<std::string>& words) {
  const BenchArguments a = read_words(words);
  if (a.notes >= 0)
    return run_row(a.notes, [&](const auto& overrides) { return open_row(a.spec, overrides); });
  RowMaker maker(a);
  const std::vector<BenchRow> rows = maker.rows();
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto announce = [&](int round, const BenchRow& row) {
    if (terminal)
      write_stderr(
          fmt::format("\r\x1b[K{} of {} rounds: {}", round, a.settings.rounds, name_of(row)));
  };
  const CoreLease lease =
      maker.spec().devices.device == "cuda" ? CoreLease() : lease_cores(maker.most_cores());
  const Measure once = [&](const BenchRow& row, const RunSteps& steps) {
    return measure(row, steps, lease.cores(),
                   [&](const BenchRow& r, int notes) { return start_row(a.spec, r, notes); });
  };
  BenchReport report{.name = maker.spec().name,
                     .device = cores_text(static_cast<size_t>(maker.cores_per_device()))};
  report.rows = take_turns(rows, a.settings, once, announce);
  if (terminal) write_stderr("\r\x1b[K");
  if (const int code = say_refused(report)) return code;
  for (const RowResult& r : report.rows)
    if (report.data.empty()) report.data = r.data;
  const bool on_gpus =
      std::ranges::any_of(report.rows, [](const RowResult& r) { return r.facts.gpus > 0; });
  if (on_gpus) report.device = "a GPU";
  report.machine = on_gpus ? gpu_machine_line() : machine_line();
  report.sentences = reasons(report.rows, static_cast<int>(usable_cores().size()));
  if (a.json)
    print_stdout("{}", bench_json(report));
  else if (a.csv)
    print_stdout("{}", bench_csv(report));
  else
    print_stdout("{}", bench_table(report));
  std::fflush(stdout);
  const std::string folder = run_folder(maker.spec());
  Disk disk;
  write_files(report, maker.spec().out.empty() ? make_next_run(folder, disk) : folder, a.svg);
  return 0;
}

}  // namespace

Command bench() {
  return {"bench", "measure modes, devices, batch sizes and precisions", run_bench};
}

}  // namespace dpt::commands
