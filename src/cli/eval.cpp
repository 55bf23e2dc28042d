// dptrain eval SPEC: loss and metrics of trained weights on the test set.
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "train/best_weights.h"
#include "train/evaluation_text.h"
#include "train/final_evaluation.h"
#include "train/reporter.h"
#include "train/run.h"
#include "train/run_directories.h"

namespace dpt::commands {
namespace {

// The weights to evaluate: `given`, or model.safetensors of the run directory that it or the spec
// names; with `best`, best.safetensors of the spec's run.
std::string weights_of(const Spec& spec, const std::string& word) {
  std::error_code error;
  const bool best = word == "best" && !std::filesystem::exists(word, error);
  std::string given = best ? "" : word;
  if (!given.empty() && !std::filesystem::is_directory(given, error)) return given;
  const bool exact = given.empty() && !spec.out.empty();
  const std::string folder = given.empty() ? run_folder(spec) : given;
  const std::string run = exact ? folder : named_run(folder);
  if (given.empty() && !exact && run == folder && holds_run(run))
    print_stderr("{} is a run of dptrain 0.1.0, which did not number its runs\n", run);
  std::string model = best ? best_weights_file(run) : model_file(run);
  if (best && !std::filesystem::exists(model, error))
    fail(Fault::data,
         "{} does not exist: the run kept no best weights; set `save: {{best: METRIC}}`", model);
  if (!std::filesystem::exists(model, error))
    fail(Fault::data,
         "{} does not exist: the run is not finished, or there is no such run; pass the weights of "
         "another run with --weights RUN/model.safetensors",
         model);
  return model;
}

int run_eval(const std::vector<std::string>& words) {
  Arguments arguments("eval", "Loss and metrics of a model on the test set, every sample once.");
  SpecArgument argument;
  std::string weights, set = "test";
  argument.add_to(arguments);
  arguments.text("--weights PATH", weights,
                 "a safetensors file or a run directory, or `best`: the best weights of the newest "
                 "run; default: the last weights of the newest run of this spec");
  arguments.choice("--set SET", set, {"test", "validation"}, "the samples to evaluate");
  arguments.parse(words);
  LoadedSpec loaded = load(argument);
  const std::string path = weights_of(loaded.spec, weights);
  const ValidationSpec validation = loaded.spec.data.validation;
  loaded.spec = evaluation_spec(std::move(loaded.spec), path);
  if (set == "validation") {
    if (!validation.on())
      fail(Fault::spec, "the spec has no validation set: set `data.validation`, or omit --set");
    loaded.spec.data.validation = validation;
  }
  const Evaluation e = evaluate(*open_session(loaded, {}));
  print_stdout("{}\n", evaluation_text(set, e, 6));
  if (!e.confusion_matrix.empty()) print_stdout("{}", confusion_csv(e));
  return 0;
}

}  // namespace

Command eval() {
  return {.name = "eval",
          .summary = "loss and metrics of trained weights on the test set",
          .run = run_eval};
}

}  // namespace dpt::commands
