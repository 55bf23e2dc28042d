// dptrain eval RUN: loss and metrics of trained weights on the test, validation or training set.
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/count.h"
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

EvaluatedSet set_of(const std::string& word) {
  if (word == "validation") return EvaluatedSet::validation;
  return word == "train" ? EvaluatedSet::training : EvaluatedSet::test;
}

std::unique_ptr<const Session> open_evaluation(const LoadedSpec& loaded, EvaluatedSet set) {
  try {
    return open_session(loaded, {.evaluates = set});
  } catch (const NoTestSplit& e) {
    fail(Fault::data, "{}, or evaluate the {}", e.what(),
         loaded.spec.data.validation.on() ? "validation set with --set validation"
                                          : "training set with --set train");
  }
}

// Says which of several sets the numbers are of.
std::string of_set(const SessionData& data) {
  return fmt::format(" ({} set, {})", data.evaluated_set(), counted(data.test_samples(), "sample"));
}

int run_eval(const std::vector<std::string>& words) {
  Arguments arguments(
      "eval",
      "Loss and metrics of a trained model on a set of samples, each of them once: the test set,\n"
      "or with --set validation the part of the data that `data.validation` sets aside.");
  SpecArgument argument;
  std::string weights, set = "test";
  argument.add_to(arguments, kRunOrSpec);
  arguments.text("--weights PATH", weights, kRunWeights);
  arguments.choice("--set SET", set, {"test", "validation", "train"},
                   "the samples to evaluate (default: test)");
  arguments.parse(words);
  TrainedRun run = load(TrainedRunArgument{
      .run = argument.path, .weights = weights, .overrides = argument.overrides});
  LoadedSpec& loaded = run.loaded;
  if (set == "validation" && !loaded.spec.data.validation.on())
    fail(Fault::spec, "the spec has no validation set: set `data.validation`, or omit --set");
  loaded.spec = evaluation_spec(std::move(loaded.spec), run.weights);
  const EvaluatedSet evaluated = set_of(set);
  const std::unique_ptr<const Session> session = open_evaluation(loaded, evaluated);
  const Evaluation e = evaluate(*session);
  print_stdout("{}{}\n", evaluation_text(name_of(evaluated), e, 6),
               loaded.spec.data.validation.on() ? of_set(session->data) : "");
  if (!e.confusion_matrix.empty()) print_stdout("{}", confusion_csv(e));
  return 0;
}

}  // namespace

Command eval() {
  return {.name = "eval", .summary = "loss and metrics of trained weights", .run = run_eval};
}

}  // namespace dpt::commands
