// dptrain lr-find SPEC: trains some steps with a growing learning rate and suggests one.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/files.h"
#include "base/signals.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "base/units.h"
#include "cli/arguments.h"
#include "cli/auto_batch.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "comm/child.h"
#include "comm/rendezvous.h"
#include "report/lr_range.h"
#include "train/metrics_file.h"
#include "train/metrics_record.h"
#include "train/scale_warnings.h"

namespace dpt::commands {
namespace {

namespace fs = std::filesystem;

struct LrFindArguments {
  SpecArgument spec;
  double from = 1e-7, to = 10;
  int steps = 100;
  std::string svg;
  bool json = false;
};

void declare_lr_find(Arguments& arguments, LrFindArguments& a) {
  arguments.about(
      "Suggests a learning rate: trains some steps in which it grows from --from "
      "to --to, and takes "
      "a rate\nfrom the middle of the longest fall of the loss (fastai's rule "
      "`valley`). Prints this "
      "number alone on\nstandard output. The spec's schedule and warm-up are not "
      "used, and nothing is "
      "kept of the training.");
  a.spec.add_to(arguments);
  arguments.number("--from LR", a.from, 1e-30, 1e6, "first learning rate; default: 1e-7");
  arguments.number("--to LR", a.to, 1e-30, 1e6, "last learning rate; default: 10");
  arguments.number("--steps N", a.steps, 20, 2000, "steps; default: 100");
  arguments.text("--svg FILE", a.svg, {takes::file},
                 "a file for a picture of the loss by learning rate");
  arguments.flag("--json", a.json, "print the rates and the losses as JSON instead of the number");
}

// A folder for the files of the run, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((fs::temp_directory_path() / "dptrain-lr-find-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr) fail_writing(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The spec's own settings of what follows would end the run early, or change the learning rate.
std::vector<std::string> overrides_for(const LrFindArguments& a, const Node& tree,
                                       const std::string& out) {
  const double factor = std::pow(a.to / a.from, 1.0 / (a.steps - 1));
  std::vector<std::string> more = {
      fmt::format("optimizer.lr={:.17g}", a.from),
      fmt::format("schedule={{exponential: {{gamma: {:.17g}}}, interval: step}}", factor),
      "epochs=null",
      fmt::format("steps={}", a.steps),
      "evaluate=false",
      "save=false",
      "log={every: 1}",
      "out=" + out};
  for (const char* key : {"minutes", "early_stop", "ema", "lr_scale"})
    if (tree.find(key) != nullptr) more.push_back(std::string(key) + "=null");
  return more;
}

// Starts this program again, in place of this process. What it prints goes to the file `messages`.
int train_quietly(const SpecArgument& spec, const std::string& messages) {
  std::vector<std::string> words = {"dptrain", "train", spec.path};
  words.insert(words.end(), spec.overrides.begin(), spec.overrides.end());
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const int file = ::open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (nothing >= 0) ::dup2(nothing, STDOUT_FILENO);
  if (file >= 0) ::dup2(file, STDERR_FILENO);
  ::execv("/proc/self/exe", arguments.data());
  return static_cast<int>(Fault::failed);
}

// The records of steps. Those that a gradient scaler skipped had no update at their rate.
LrCurve read_curve(const std::string& metrics, bool diverged) {
  std::vector<double> lr, loss;
  std::ifstream in(metrics);
  read_lines(in, [&](std::string_view line, int64_t) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    const auto record = parse_record(line);
    if (!record || record->kind() != RecordKind::step || record->number("skipped") == 1) return;
    lr.push_back(record->number("lr").value_or(kNone));
    loss.push_back(record->number("loss").value_or(kNone));
  });
  return smooth_curve(lr, loss, diverged);
}

std::string tail_of(const std::string& file) {
  constexpr size_t kShown = 4 * kKiB;
  const std::string all = read_file(file, kMiB);
  if (all.size() <= kShown) return all;
  return all.substr(all.find('\n', all.size() - kShown) + 1);
}

// Trains with the growing rate; returns its exit code.
int train(const LrFindArguments& a, const LoadedSpec& loaded, const TemporaryFolder& folder) {
  SpecArgument spec = a.spec;
  const std::vector<std::string> more = overrides_for(a, loaded.tree, folder.file("run"));
  spec.overrides.insert(spec.overrides.end(), more.begin(), more.end());
  return run_in_child([&] { return train_quietly(spec, folder.file("messages")); });
}

void report(const LrFindArguments& a, const Spec& spec, const LrCurve& curve,
            const LrSuggestion& found) {
  constexpr size_t kWidth = 80;
  print_stderr("{}", lr_chart(curve, found, kWidth));
  if (curve.diverged)
    print_stderr("the loss diverged at a learning rate of {}, after {}\n", lr_text(curve.lr.back()),
                 counted(curve.size(), "step"));
  if (found.falls_to_end)
    print_stderr("the loss still falls at {}: a larger --to may find a larger rate\n",
                 lr_text(curve.lr.back()));
  std::vector<std::string> words = a.spec.overrides;
  words.insert(words.begin(), a.spec.path);
  print_stderr("valley: {} (marked), steepest fall: {}\n", lr_text(found.valley),
               lr_text(found.steep));
  print_stderr("next: dptrain {} optimizer.lr={}\n", fmt::join(words, " "), lr_text(found.valley));
  if (!a.svg.empty())
    write_text(a.svg, lr_svg(curve, found, "Learning rate range test of " + spec.name),
               "; choose another file with --svg");
  if (a.json)
    print_stdout("{}", lr_json(curve, found));
  else
    print_stdout("{}\n", lr_text(found.valley));
}

int run_lr_find(LrFindArguments& a) {
  if (a.from >= a.to)
    fail(Fault::spec, "--from {} must be less than --to {}", lr_text(a.from), lr_text(a.to));
  if (const auto world = world_from_environment(); world && world->size > 1)
    fail(Fault::spec, "lr-find starts its own ranks; run it without {}", world->launcher);
  a.spec.path = find_spec(a.spec.path);
  LoadedSpec loaded = load(a.spec);
  if (loaded.spec.data.auto_batch) {
    loaded = with_chosen_batch(std::move(loaded), a.spec, "", {});
    a.spec.overrides.push_back(fmt::format("data.batch_size={}", *loaded.spec.data.batch_size));
  }
  print_stderr("learning rates from {} to {} in {} with {}; schedule and warm-up are not used\n",
               lr_text(a.from), lr_text(a.to), counted(a.steps, "step"),
               loaded.spec.optimizer.what->name);
  if (loaded.tree.find("lr_scale") != nullptr)
    print_stderr("lr_scale is not used either: the result is the rate for this batch size\n");
  const TemporaryFolder folder;
  std::atomic<int> stopped = 0;
  int code = 0;
  {
    const StopSignals signals(stopped);  // the run's, and then the folder is removed
    code = train(a, loaded, folder);
  }
  if (stopped != 0) return exit_code_of(stopped);
  if (code != 0 && code != static_cast<int>(Fault::diverged)) {
    print_stderr("{}", tail_of(folder.file("messages")));
    return code;
  }
  const LrCurve curve =
      read_curve(folder.file("run/metrics.jsonl"), code == static_cast<int>(Fault::diverged));
  std::string problem;
  const std::optional<LrSuggestion> found = suggest_lr(curve, problem);
  if (!found) {
    const auto session = open_session(loaded, {.runs = false, .sizes_only = true});
    for (const std::string& scale : scale_warnings(*session)) problem += "; " + scale;
    fail(Fault::failed, "there is no learning rate to suggest: {}", problem);
  }
  report(a, loaded.spec, curve, *found);
  return 0;
}

}  // namespace

Command lr_find() {
  return make_command("lr-find", "suggest a learning rate by a range test", declare_lr_find,
                      run_lr_find);
}

}  // namespace dpt::commands
