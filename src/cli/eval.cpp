// dptrain eval SPEC: loss and accuracy of given weights on the test set.
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "parallel/mode.h"
#include "train/run.h"

namespace dpt::commands {
namespace {

int run_eval(const std::vector<std::string>& words) {
  Arguments arguments("eval", "Loss and accuracy of a model on the test set, every sample once.");
  SpecArgument argument;
  std::string weights;
  argument.add_to(arguments);
  arguments.text("--weights", weights, "a safetensors file; default: the run's model.safetensors");
  arguments.parse(words);
  LoadedSpec loaded = load(argument);
  loaded.spec.evaluate.on = true;
  loaded.spec.initial_weights =
      weights.empty() ? run_folder(loaded.spec) + "/model.safetensors" : weights;
  // Which mode it was trained in does not matter here.
  loaded.spec.parallel = mode_choice("single");
  loaded.spec.devices.count.reset();
  const Evaluation e = evaluate(*open_session(loaded, {}));
  print_stdout("Test loss: {:.6f}", e.loss);
  if (e.accuracy >= 0) print_stdout(", Accuracy: {:.2f} %", 100 * e.accuracy);
  print_stdout("\n");
  return 0;
}

}  // namespace

Command eval() {
  return {"eval", "loss and accuracy of trained weights on the test set", run_eval};
}

}  // namespace dpt::commands
