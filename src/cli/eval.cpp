// dptrain eval RUN: loss and metrics of trained weights on the test, validation or training set.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/count.h"
#include "base/fail.h"
#include "base/stderr.h"
#include "base/stdout.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/printed_numbers.h"
#include "cli/spec_argument.h"
#include "cli/trained_run.h"
#include "report/metric_text.h"
#include "report/text_table.h"
#include "spec/metric_name.h"
#include "train/evaluation_text.h"
#include "train/final_evaluation.h"
#include "train/run.h"
#include "train/run_data.h"
#include "train/run_numbers.h"

namespace dpt::commands {
namespace {

EvaluatedSet set_of(const std::string& word) {
  if (word == "validation") return EvaluatedSet::validation;
  return word == "train" ? EvaluatedSet::training : EvaluatedSet::test;
}

// fitted: what the weights were trained with; null: not known.
std::unique_ptr<const Session> open_evaluation(const LoadedSpec& loaded, EvaluatedSet set,
                                               const SampleForm* fitted) {
  try {
    return open_session(loaded, {.evaluates = set, .fitted = fitted});
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

using Numbers = std::vector<std::pair<std::string, double>>;

// "test.loss" and the other metrics.
Numbers numbers_of(std::string_view set, const Evaluation& e) {
  Numbers out = {{fmt::format("{}.loss", set), e.loss}};
  if (e.accuracy >= 0) out.emplace_back(fmt::format("{}.accuracy", set), e.accuracy);
  for (const auto& [name, value] : e.metrics)
    out.emplace_back(fmt::format("{}.{}", set, name), value);
  for (const auto& [name, value] : e.by_label)
    if (std::ranges::find(e.metrics, name, &NamedValue::name) == e.metrics.end())
      out.emplace_back(fmt::format("{}.{}", set, name), value);
  return out;
}

// A row for each label, a column for each metric; empty if there are no labels.
std::string label_table(const Evaluation& e) {
  std::vector<TextColumn> columns = {{.cells = {"label"}}};
  for (const auto& [name, value] : e.by_label) {
    const std::string metric(without_label(name));
    if (columns.back().cells[0] != metric) columns.push_back({.cells = {metric}, .right = true});
    columns.back().cells.push_back(value_text(name, value));
    if (columns.size() == 2) columns[0].cells.push_back(escape_controls(label_of(name)));
  }
  return e.by_label.empty() ? "" : table_text(columns);
}

// The values of a list of names, with or without their set, on one line.
std::string printed_line(const std::string& list, const std::string& set, const Numbers& numbers) {
  std::vector<std::string> values, known;
  for (const auto& number : numbers) known.push_back(number.first);
  for (const std::string& name : names_in(list)) {
    const auto found = std::ranges::find_if(
        numbers, [&](const auto& n) { return n.first == name || n.first == set + "." + name; });
    if (found == numbers.end())
      fail(Fault::spec, "--print: this evaluation has no number '{}'; it has: {}", name,
           fmt::join(known, ", "));
    values.push_back(exact_number(found->second));
  }
  return fmt::format("{}\n", fmt::join(values, " "));
}

std::string evaluation_json(const TrainedRun& run, const std::string& set, int64_t samples,
                            const Evaluation& e) {
  Json out = {{"run", run.folder}, {"weights", run.weights}, {"set", set}, {"samples", samples}};
  for (const auto& [name, value] : numbers_of(set, e)) out.add(name, exact_json(value));
  if (e.confusion_matrix.empty()) return out.dump() + "\n";
  const auto classes =
      static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(e.confusion_matrix.size()))));
  Json rows = Json::array();
  for (size_t i = 0; i < classes; ++i)
    rows.push(Json::array_of(std::span(e.confusion_matrix).subspan(i * classes, classes)));
  return out.add("confusion_matrix", std::move(rows)).dump() + "\n";
}

struct EvalArguments {
  SpecArgument spec;
  std::string weights, set = "test", print;
  bool json = false;
};

void declare_eval(Arguments& arguments, EvalArguments& given) {
  arguments.about(
      "Loss and metrics of a trained model on a set of samples, each of them once: the test set,\n"
      "or with --set validation the part of the data that `data.validation` sets aside.");
  given.spec.add_to(arguments, kRunOrSpec, takes::run);
  arguments.text("--weights PATH", given.weights, {takes::file, {"best", "last"}}, kRunWeights);
  arguments.choice("--set SET", given.set, {"test", "validation", "train"},
                   "the samples to evaluate (default: test)");
  arguments.text("--print,--numbers LIST", given.print, {takes::result, {}, true},
                 "print only these numbers: accuracy, loss,f1, ...");
  arguments.flag("--json", given.json, "print JSON", "--print");
}

int run_eval(EvalArguments& given) {
  TrainedRun run = load(TrainedRunArgument{
      .run = given.spec.path, .weights = given.weights, .overrides = given.spec.overrides});
  LoadedSpec& loaded = run.loaded;
  if (given.set == "validation" && !loaded.spec.data.validation.on())
    fail(Fault::spec, "the spec has no validation set: set `data.validation`, or omit --set");
  loaded.spec = evaluation_spec(std::move(loaded.spec), run.weights);
  const EvaluatedSet evaluated = set_of(given.set);
  const std::optional<SampleForm> fitted = fitted_form(run);
  const std::unique_ptr<const Session> session =
      open_evaluation(loaded, evaluated, fitted ? &*fitted : nullptr);
  if (fitted)
    for (const std::string& text : evaluated_data_changes(*fitted, session->data))
      print_stderr("warning: {}\n", text);
  if (session->data.test)
    for (const std::string& text : session->data.test->warnings)
      print_stderr("warning: {}\n", text);
  const Evaluation e = evaluate(*session);
  if (!given.print.empty()) {
    print_stdout("{}", printed_line(given.print, given.set, numbers_of(given.set, e)));
    return 0;
  }
  if (given.json) {
    print_stdout("{}", evaluation_json(run, given.set, session->data.test_samples(), e));
    return 0;
  }
  print_stdout("{}{}\n", evaluation_text(name_of(evaluated), e, 6),
               loaded.spec.data.validation.on() ? of_set(session->data) : "");
  print_stdout("{}", label_table(e));
  if (!e.confusion_matrix.empty())
    print_stdout("{}", confusion_csv(e, session->data.train.class_names));
  return 0;
}

}  // namespace

Command eval() {
  return make_command("eval", "loss and metrics of trained weights", declare_eval, run_eval);
}

}  // namespace dpt::commands
