#include "cli/sweep_setup.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backend/cuda/interface/load.h"
#include "base/count.h"
#include "base/disk.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/stderr.h"
#include "cli/sweep_check.h"
#include "spec/metric_name.h"
#include "spec/node.h"
#include "train/run_directories.h"
#include "train/run_summary.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

// Keys that the sweep sets itself.
void check_words(const SweepArguments& given) {
  for (const std::string& word : given.spec.overrides) {
    if (word.starts_with("out="))
      throw BadSpec{
          "dptrain: out: each run of a sweep has a directory of its own; name the "
          "sweep's with --out DIR\n"};
    if (word.starts_with("seed=") && given.seeds > 0)
      throw BadSpec{"dptrain: --seeds sets the seed of each run; leave seed=... or --seeds out\n"};
  }
  std::error_code error;
  if (!given.spec.path.empty() && fs::exists(given.spec.path, error) &&
      !fs::is_regular_file(given.spec.path, error))
    throw BadSpec{
        fmt::format("dptrain: {} is not a file; each run of a sweep reads the spec, so it "
                    "cannot be a pipe\n",
                    given.spec.path)};
}

bool on_gpu(const Spec& spec) {
  return spec.devices.device == "cuda" ||
         (spec.devices.device == "auto" && cuda::survey_gpus().count > 0);
}

int read_jobs(const std::string& text) {
  if (text == "auto") return 0;
  int jobs = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, jobs);
  constexpr int kMost = 1000;
  if (error != std::errc() || at != end || jobs < 1 || jobs > kMost)
    throw BadSpec{fmt::format("dptrain: --jobs '{}' is neither 'auto' nor a number from 1 to {}\n",
                              text, kMost)};
  return jobs;
}

// Metrics that runs record while they train.
std::vector<std::string> metrics_on_the_way(const Spec& spec) {
  std::vector<std::string> out = metrics_of(spec);
  if (spec.data.validation.on())
    std::erase_if(out, [](const std::string& m) { return m.starts_with("test."); });
  return out;
}

std::string checked_metric(const std::string& option, std::string name, const Spec& spec,
                           bool may_be_best) {
  name = full_metric_name(name, spec);
  const std::vector<std::string> known = metrics_on_the_way(spec);
  // Of labels, too, whose names are in the data.
  const std::string_view metric = may_be_best ? without_best(name) : name;
  const bool by_label = records_metric(spec, metric);
  if (std::ranges::find(known, by_label ? without_label(metric) : metric) == known.end()) {
    const std::string advice = spec.data.validation.on() ? "" : evaluation_advice(spec);
    throw BadSpec{
        fmt::format("dptrain: {}: runs of this spec do not record '{}' while they train; "
                    "they record: {}{}{}\n",
                    option, name, fmt::join(known, ", "), advice.empty() ? "" : "; ", advice)};
  }
  return name;
}

// The metric of the evaluations that users mean by "best": the first one beside the loss.
std::string default_metric(const Spec& spec) {
  const std::vector<std::string> known = metrics_on_the_way(spec);
  for (const std::string& m : known)
    if (without_set(m) != "loss") return m;
  return known.back();  // the loss of evaluations, or else of training
}

SweepTarget read_target(const std::string& option, const std::string& text, const Spec& spec) {
  const size_t equals = text.find('=');
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = equals == text.npos
                               ? std::from_chars_result{end, std::errc::invalid_argument}
                               : std::from_chars(text.data() + equals + 1, end, value);
  if (error != std::errc() || at != end || !std::isfinite(value))
    throw BadSpec{
        fmt::format("dptrain: {} '{}' is not METRIC=NUMBER, as in {} test.accuracy=0.88\n", option,
                    text, option)};
  return {.metric = checked_metric(option, text.substr(0, equals), spec, false),
          .value = value,
          .ends_sweep = option == "--until"};
}

void read_goal(SweepSetup& out, const SweepArguments& given, const Spec& spec) {
  out.sweep.metric = given.metric.empty() ? default_metric(spec)
                                          : checked_metric("--metric", given.metric, spec, true);
  if (!given.until.empty() && !given.target.empty())
    throw BadSpec{
        "dptrain: --until and --target exclude each other: --until ends the sweep at the "
        "first run that reaches the value, --target only that run\n"};
  if (!given.until.empty()) out.sweep.target = read_target("--until", given.until, spec);
  if (!given.target.empty()) out.sweep.target = read_target("--target", given.target, spec);
  if (given.metric.empty() && out.sweep.target) out.sweep.metric = out.sweep.target->metric;
  if (!given.halving) return;
  if (!spec.save.on)
    throw BadSpec{
        "dptrain: --halving continues runs from their checkpoints; "
        "leave out `save: false`\n"};
  for (const SweepRun& r : out.sweep.runs)
    if (r.facts.epochs == 0 || r.facts.epochs != out.sweep.runs[0].facts.epochs)
      throw BadSpec{
          "dptrain: --halving needs the same number of epochs for all runs; set "
          "epochs=N, and leave out `steps`\n"};
  const bool evaluated =
      out.sweep.metric.find('.') != std::string::npos && spec.evaluate.every_steps == 0;
  out.rungs = halving_rungs(out.sweep.settings(), out.sweep.runs[0].facts.epochs, given.eta,
                            evaluated ? spec.evaluate.every : 1);
}

// Gives each device of a run its cores, unless the spec does.
void share_cores(SweepSetup& out, const SweepArguments& given, const Spec& spec) {
  out.limits = {.jobs = read_jobs(given.jobs), .cores = static_cast<int>(usable_cores().size())};
  const std::string machine = counted(out.limits.cores, "core");
  if (on_gpu(spec)) {
    if (out.limits.jobs == 0) out.limits.jobs = 1;
    out.note = fmt::format("{} at a time on the GPUs", counted(out.limits.jobs, "run"));
    return;
  }
  int64_t most_devices = 1;
  for (const SweepRun& r : out.sweep.runs) most_devices = std::max(most_devices, r.facts.devices);
  const bool swept = std::ranges::find(out.sweep.keys, "cores") != out.sweep.keys.end();
  if (!spec.devices.cores && !swept && out.limits.jobs != 1) {
    const int per_device =
        out.limits.jobs == 0
            ? 1
            : std::max(1, out.limits.cores / (out.limits.jobs * static_cast<int>(most_devices)));
    out.command.push_back(fmt::format("cores={}", per_device));
    for (SweepRun& r : out.sweep.runs)
      r.facts.cores = per_device * static_cast<int>(r.facts.devices);
    out.note = fmt::format(
        "each device of a run gets {} (cores={}; --jobs 1 gives a run all of the "
        "machine's {})",
        counted(per_device, "core"), per_device, machine);
  }
  int most = 1, least = out.limits.cores;
  for (const SweepRun& r : out.sweep.runs) {
    most = std::max(most, r.facts.cores);
    least = std::min(least, r.facts.cores);
  }
  const int fit =
      out.limits.jobs > 0 ? out.limits.jobs : std::max(1, out.limits.cores / std::max(1, least));
  out.note = fmt::format("up to {} at a time on {}{}{}", counted(fit, "run"), machine,
                         out.note.empty() ? "" : "; ", out.note);
  const bool timed = out.sweep.target || std::ranges::any_of(out.sweep.keys, [](const auto& k) {
                       return k == "devices" || k == "cores" || k.starts_with("parallel");
                     });
  if (timed && fit > 1)
    out.note += "; for times that other runs do not disturb, add --jobs 1 cores=1";
  if (out.limits.jobs > 1 && out.limits.jobs * most > out.limits.cores)
    out.note += "; they share cores and slow each other down";
}

SweepIdentity identity_of(const SweepArguments& given, const std::vector<std::string>& constants) {
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics ignored;  // what is missing here, the points may give
  Node tree;
  (void)load_spec(given.spec.path, constants, registries(), files, ignored, &tree);
  SweepIdentity out{.spec = to_yaml(tree), .settings = {}};
  if (given.halving) out.settings["halving"] = fmt::format("eta {}", given.eta);
  if (!given.until.empty()) out.settings["until"] = given.until;
  if (!given.target.empty()) out.settings["target"] = given.target;
  if (given.random > 0) out.settings["random"] = fmt::format("seed {}", given.random_seed);
  return out;
}

// Sweeps below sweeps/NAME, the newest first.
std::vector<std::string> earlier_sweeps(const std::string& base) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(base, error), end; !error && at != end; at.increment(error))
    if (holds_sweep(at->path().string())) out.push_back(at->path().filename().string());
  std::ranges::sort(out,
                    [](const std::string& a, const std::string& b) { return natural_less(b, a); });
  for (std::string& name : out) name = fmt::format("{}/{}", base, name);
  return out;
}

std::string first_changes(const std::vector<std::string>& changes) {
  constexpr size_t kMost = 4;
  const size_t shown = std::min(changes.size(), kMost);
  std::string out;
  for (size_t i = 0; i < shown; ++i) out += fmt::format("  {}\n", changes[i]);
  if (changes.size() > kMost) out += fmt::format("  and {} more\n", changes.size() - kMost);
  return out;
}

// The folder that this command continues; empty: it begins a new one.
std::string folder_to_continue(const SweepSetup& setup, const SweepArguments& given,
                               const std::string& base) {
  if (given.anew) return "";
  const std::vector<std::string> earlier = earlier_sweeps(base);
  for (const std::string& folder : earlier)
    if (sweep_changes(folder, setup.sweep, setup.identity).empty()) return folder;
  if (!earlier.empty())
    print_stderr("{} holds another sweep; what differs now:\n{}", earlier[0],
                 first_changes(sweep_changes(earlier[0], setup.sweep, setup.identity)));
  return "";
}

FolderLock lock_sweep(const std::string& folder) {
  try {
    return FolderLock(folder);
  } catch (const FolderLocked& e) {
    fail(Fault::failed,
         "the sweep {} is running ({}); wait for it to end, or start another with --new or --out "
         "DIR",
         folder, e.holder());
  }
}

}  // namespace

SweepSetup set_up_sweep(const SweepArguments& given) {
  check_words(given);
  if (given.spec.path.empty()) (void)load(given.spec);  // says that a spec is missing
  if (given.zip && given.random > 0)
    throw BadSpec{
        "dptrain: --zip and --random exclude each other: --zip takes the lists in step, "
        "--random draws from them\n"};
  std::vector<std::unique_ptr<SourceFile>> files;
  Diagnostics d;
  const SweepWords words = read_sweep_words(given.spec.overrides, given.random > 0, files, d);
  if (!d.ok()) throw BadSpec{d.render()};
  SweepSetup out;
  const SweepPlan plan{.zip = given.zip,
                       .random = given.random,
                       .random_seed = given.random_seed,
                       .seeds = given.seeds};
  for (SweepPoint& p : make_points(words, plan)) out.sweep.runs.push_back({.point = std::move(p)});
  out.sweep.seeds = given.seeds;
  for (const SweepKey& k : words.keys) out.sweep.keys.push_back(k.key);
  const Spec first =
      check_settings(out.sweep.runs, {.path = given.spec.path, .overrides = words.constants});
  out.sweep.name = first.name;
  out.command = {"dptrain", "train", given.spec.path};
  out.command.insert(out.command.end(), words.constants.begin(), words.constants.end());
  read_goal(out, given, first);
  share_cores(out, given, first);
  out.identity = identity_of(given, words.constants);
  return out;
}

FolderLock open_sweep_folder(SweepSetup& setup, const SweepArguments& given) {
  const std::string base = "sweeps/" + setup.sweep.name;
  std::string folder = given.out;
  bool continues = false;
  if (folder.empty()) {
    folder = folder_to_continue(setup, given, base);
    continues = !folder.empty();
    Disk disk;
    if (!continues) folder = make_next_run(base, disk);
  } else {
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    if (holds_run(folder))
      throw BadSpec{
          fmt::format("dptrain: --out {} holds a run; choose a directory for the sweep\n", folder)};
    continues = holds_sweep(folder);
    const auto changes =
        continues ? sweep_changes(folder, setup.sweep, setup.identity) : std::vector<std::string>();
    if (!changes.empty() || (continues && given.anew))
      throw BadSpec{fmt::format(
          "dptrain: --out {} holds {}; choose another directory, or remove "
          "it\n{}",
          folder, changes.empty() ? "a sweep" : "another sweep", first_changes(changes))};
    make_folder(folder, "the sweep's directory");
  }
  setup.sweep.folder = folder;
  FolderLock lock = lock_sweep(folder);
  if (continues) restore_runs(setup.sweep, given.retry_failed);
  const auto waiting =
      std::ranges::count_if(setup.sweep.runs, [](const SweepRun& r) { return !r.has_ended(); });
  print_stderr("{} sweep {}: {}, {} to train\n", continues ? "continuing" : "beginning", folder,
               counted(setup.sweep.runs.size(), "run"), waiting);
  return lock;
}

}  // namespace dpt
