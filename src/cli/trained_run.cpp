#include "cli/trained_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/files.h"
#include "base/stderr.h"
#include "base/units.h"
#include "cli/run_argument.h"
#include "session/load_data.h"
#include "spec/changes.h"
#include "train/best_weights.h"
#include "train/reporter.h"
#include "train/run_data.h"
#include "train/run_directories.h"

namespace dpt {
namespace {

namespace fs = std::filesystem;

std::string newest_run_of(const Spec& spec) {
  std::string folder = run_folder(spec);
  if (!spec.out.empty()) return folder;
  std::string run = named_run(folder);
  if (run == folder && holds_run(run))
    print_stderr("{} is a run of dptrain 0.1.0, which did not number its runs\n", run);
  return run;
}

// Whether an override sets the key, a section that holds it, or a key of the section that it names.
bool is_overridden(const std::string& key, const std::vector<std::string>& overrides) {
  return std::ranges::any_of(overrides, [&](const std::string& o) {
    const std::string given = key_of_main_value(o.substr(0, o.find('=')), registries());
    return key == given || key.starts_with(given + ".") || key.starts_with(given + "[") ||
           given.starts_with(key + ".");
  });
}

// A spec stands for the newest run of its name, which another version of the spec may have trained:
// names the keys in which they differ, but not those that the user overrides now, nor the folder in
// which dptrain found a data set.
void warn_of_other_spec(const TrainedRun& run, const TrainedRunArgument& argument) {
  const std::string folder = fs::path(run.weights).parent_path().string();
  const std::string trained = folder + "/spec.resolved.yaml";
  std::error_code error;
  if (!fs::exists(trained, error)) return;
  std::string lines;
  for (const SpecChange& c :
       spec_changes(read_file(trained, 16 * kMiB), to_yaml(run.loaded.tree), registries()))
    if (c.key != "out" && c.now != "auto" && !is_overridden(c.key, argument.overrides) &&
        !(c.key.ends_with(".path") && c.now == "(not given)"))
      lines += fmt::format("  {}: {} in the run, {} in the spec\n", c.key, c.before, c.now);
  if (!lines.empty())
    print_stderr("warning: {} was trained with other settings than {}:\n{}", folder, argument.run,
                 lines);
}

// Which of a run's weights a file has, in brackets; empty: it is not one of a run directory.
std::string note_of(const std::string& weights) {
  if (const std::optional<std::string> best = text_of_best_weights(weights))
    return fmt::format(" (best {})", *best);
  return fs::path(weights).filename() == "model.safetensors" ? " (last)" : "";
}

}  // namespace

std::string trained_weights(const Spec& spec, const std::string& word, const std::string& run) {
  std::error_code error;
  const bool by_word = (word == "best" || word == "last") && !fs::exists(word, error);
  const std::string given = by_word ? "" : word;
  if (!given.empty() && !fs::is_directory(given, error)) return given;
  const std::string folder = !given.empty() ? named_run(given)
                             : run.empty()  ? newest_run_of(spec)
                                            : run;
  const std::string best = best_weights_file(folder), last = model_file(folder);
  if ((!by_word || word == "best") && fs::exists(best, error)) return best;
  if (by_word && word == "best")
    fail(Fault::data,
         "{} does not exist: the run kept no best weights; set `save: {{best: METRIC}}`", best);
  if (!fs::exists(last, error))
    fail(Fault::data,
         "{} does not exist: the run is not finished, or there is no such run; pass the weights of "
         "another run with --weights RUN/model.safetensors",
         last);
  return last;
}

void TrainedRunArgument::add_to(Arguments& arguments) {
  arguments.text("RUN", run, {takes::run | takes::spec}, kRunOrSpec);
  arguments.text("--weights PATH", weights, {takes::file, {"best", "last"}}, kRunWeights);
}

bool names_run(const std::string& given) {
  std::error_code error;
  if (fs::is_directory(given, error)) return true;
  return !fs::exists(given, error) && fs::is_directory("runs/" + given, error);
}

TrainedRun load(const TrainedRunArgument& argument) {
  TrainedRun out;
  const bool run = argument.run.empty() || names_run(argument.run);
  std::error_code error;
  // A spec that is not here may be one of the installation's.
  if (!run && !argument.run.ends_with(".yaml") && !fs::exists(argument.run, error))
    fail(
        Fault::data,
        "{} is neither a run directory, nor the name of a run in runs/, nor a spec; `dptrain runs` "
        "lists the runs",
        argument.run);
  SpecArgument spec{.path = argument.run, .overrides = argument.overrides};
  if (run) {
    out.folder = find_run(argument.run);
    spec.path = out.folder + "/spec.resolved.yaml";
    if (!fs::exists(spec.path, error))
      fail(Fault::data, "{} does not exist; name the run's spec instead of the run", spec.path);
  }
  out.loaded = load(spec);
  out.weights = trained_weights(out.loaded.spec, argument.weights, out.folder);
  if (!run &&
      (argument.weights.empty() || argument.weights == "best" || argument.weights == "last"))
    warn_of_other_spec(out, argument);
  print_stderr("weights: {}{}\n", out.weights, note_of(out.weights));
  return out;
}

std::optional<SampleForm> fitted_form(const TrainedRun& run) {
  std::optional<SampleForm> out = form_of_run(run.weights);
  if (!out && !run.folder.empty()) out = form_of_run(run.folder);
  return out;
}

SampleForm sample_form(const TrainedRun& run) {
  if (std::optional<SampleForm> form = fitted_form(run)) return *std::move(form);
  Spec spec = run.loaded.spec;
  spec.data.validation.dataset = {};  // a part of the training set decides about statistics
  spec.evaluate.on = false;
  Diagnostics d;
  const RunSettings settings = make_settings(std::move(spec), d);
  if (d.ok()) {
    const SessionData data = load_data(settings, {.runs = false, .sizes_only = true}, d);
    if (d.ok()) return form_of(data.train);
  }
  throw BadSpec{d.render()};
}

}  // namespace dpt
