// dptrain eval SPEC: loss and metrics of trained weights on the test set.
#include <utility>

#include "base/fail.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/spec_argument.h"
#include "cli/trained_run.h"
#include "train/evaluation_text.h"
#include "train/final_evaluation.h"
#include "train/run.h"

namespace dpt::commands {
namespace {

int run_eval(const std::vector<std::string>& words) {
  Arguments arguments("eval", "Loss and metrics of a model on the test set, every sample once.");
  SpecArgument argument;
  std::string weights, set = "test";
  argument.add_to(arguments);
  arguments.text("--weights PATH", weights,
                 "a file of safetensors or torch.save, a run directory, or `best`: the best "
                 "weights of the newest "
                 "run; default: the last weights of the newest run of this spec");
  arguments.choice("--set SET", set, {"test", "validation"}, "the samples to evaluate");
  arguments.parse(words);
  LoadedSpec loaded = load(argument);
  const std::string path = trained_weights(loaded.spec, weights);
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
