// dptrain eval SPEC: loss and accuracy of trained weights on the test set.
#include <filesystem>
#include <system_error>

#include "base/fail.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "parallel/mode.h"
#include "train/reporter.h"
#include "train/run.h"
#include "train/run_directories.h"

namespace dpt::commands {
namespace {

// The weights to evaluate: `given`, or model.safetensors of the run directory that it or the spec
// names.
std::string weights_of(const Spec& spec, const std::string& given) {
  std::error_code error;
  if (!given.empty() && !std::filesystem::is_directory(given, error)) return given;
  const bool exact = given.empty() && !spec.out.empty();
  const std::string folder = given.empty() ? run_folder(spec) : given;
  const std::string run = exact ? folder : named_run(folder);
  if (given.empty() && !exact && run == folder && holds_run(run))
    print_stderr("{} is a run of dptrain 0.1.0, which did not number its runs\n", run);
  const std::string model = model_file(run);
  if (!std::filesystem::exists(model, error))
    fail(Fault::data,
         "there is no {}: that run is not complete, or there is none; give the weights of another "
         "with --weights RUN/model.safetensors",
         model);
  return model;
}

int run_eval(const std::vector<std::string>& words) {
  Arguments arguments("eval", "Loss and accuracy of a model on the test set, every sample once.");
  SpecArgument argument;
  std::string weights;
  argument.add_to(arguments);
  arguments.text("--weights PATH", weights,
                 "a safetensors file or a run directory; default: the newest run of this spec");
  arguments.parse(words);
  LoadedSpec loaded = load(argument);
  loaded.spec.evaluate.on = true;
  loaded.spec.initial_weights = weights_of(loaded.spec, weights);
  loaded.spec.locations.erase("initial_weights");  // the spec did not set these weights
  // The mode that trained the weights does not matter here.
  loaded.spec.parallel = mode_choice("single");
  loaded.spec.devices.count.reset();
  const Evaluation e = evaluate(*open_session(loaded, {}));
  print_stdout("Test loss: {:.6f}", unsigned_nan(e.loss));
  if (e.accuracy >= 0) print_stdout(", Accuracy: {:.2f} %", 100 * e.accuracy);
  print_stdout("\n");
  return 0;
}

}  // namespace

Command eval() {
  return {.name = "eval",
          .summary = "loss and accuracy of trained weights on the test set",
          .run = run_eval};
}

}  // namespace dpt::commands
