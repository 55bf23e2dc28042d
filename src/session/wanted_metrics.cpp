// Which metrics the evaluations of a session compute.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "session/compiled_model.h"
#include "session/evaluation_metrics.h"
#include "session/run_settings.h"
#include "session/session_batches.h"
#include "session/session_data.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

constexpr int64_t kMostMatrix = 1000;  // classes of a confusion matrix: 8 MB for each shard
constexpr int64_t kMostScores = int64_t{1} << 27;  // that auc keeps: 1 GiB for all shards
constexpr size_t kMostNamed = 20;                  // labels in a message

// Whether the targets are class indices, so that there is an accuracy.
bool by_classes(const RunSettings& settings, const SessionData& data) {
  return settings.loss->classes && data.test_loader->target().dtype == DType::i32;
}

std::vector<Located<std::string>> wanted(const RunSettings& settings, const SessionData& data) {
  std::vector<Located<std::string>> out = settings.spec.evaluate.metrics;
  if (out.empty() && by_classes(settings, data))
    out.push_back({"accuracy", settings.spec.evaluate.where});
  const auto add = [&](const std::string& name, std::string_view key) {
    if (!name.empty() && std::ranges::find(out, name, &Located<std::string>::value) == out.end())
      out.push_back({name, settings.spec.at(key)});
  };
  add(metric_of_best(settings.spec, data), "save.best");
  add(metric_of_early_stop(settings.spec), "early_stop.metric");
  std::erase_if(out, [](const Located<std::string>& name) { return name.value == "loss"; });
  return out;
}

// The names of the classes or labels: those of classes, or of the target's columns. Empty: there
// are none.
std::vector<std::string> label_names(const SessionData& data, int64_t labels) {
  const auto count = static_cast<size_t>(labels);
  const TableColumns& columns = data.train.columns;
  if (data.train.class_names.size() == count) return data.train.class_names;
  std::vector<std::string> out;
  if (columns.header && columns.targets.size() == count && data.train.classes == 0)
    for (const size_t column : columns.targets) out.push_back(columns.names[column]);
  return out;
}

// Why there is no such class or label; empty: there is one, or the metric is a mean.
std::string unknown_label(std::string_view metric, const EvaluationMetrics::Settings& found) {
  const std::string_view name = label_of(metric);
  if (name.empty()) return "";
  const bool of_classes = found.classes > 0;
  const std::string_view what = of_classes ? "class" : "label";
  if (of_classes && without_label(metric) == "accuracy")
    return fmt::format("{}: the accuracy of one class is its recall; write recall.{}", metric,
                       name);
  std::vector<std::string> names = found.label_names;
  const int64_t count = of_classes ? found.classes : found.labels.labels;
  for (auto i = std::ssize(names); i < count; ++i) names.push_back(std::to_string(i));
  if (std::ranges::find(names, name) != names.end()) return "";
  const size_t shown = std::min(names.size(), kMostNamed);
  return fmt::format("{}: there is no {} '{}'; {}: {}{}", metric, what, name,
                     of_classes ? "the classes are" : "the labels are",
                     fmt::join(std::span(names).first(shown), ", "),
                     shown < names.size() ? ", ..." : "");
}

// Why auc cannot keep its scores; empty: it can.
std::string too_many_scores(const EvaluationMetrics::Settings& found) {
  if (found.labels.positions * found.labels.labels <= kMostScores) return "";
  return fmt::format(
      "auc keeps every output of an evaluation, which are too many here: at most {} are possible "
      "for each worker; leave out auc, or evaluate fewer samples",
      kMostScores);
}

std::string misfit_of_labels(std::string_view metric, const std::string& loss,
                             const EvaluationMetrics::Settings& found) {
  const std::string_view mean = without_label(metric);
  if (!is_count_metric(mean) && mean != "auc")
    return fmt::format(
        "{} needs class targets and a loss such as cross_entropy; for {} there are accuracy, "
        "precision, recall, f1 and auc",
        metric, loss);
  const std::string problem = mean == "auc" ? too_many_scores(found) : "";
  return problem.empty() ? unknown_label(metric, found) : problem;
}

// Of a loss over classes.
std::string misfit_of_auc(std::string_view metric, const RunSettings& settings,
                          const EvaluationMetrics::Settings& found) {
  if (found.classes > 2 && settings.loss->outputs == OutputKind::values)
    return fmt::format(
        "{} of more than two classes needs a loss that trains probabilities, such as "
        "cross_entropy, not {}",
        metric, settings.loss->name);
  if (found.classes < 2) return fmt::format("{} needs at least two classes", metric);
  const std::string problem = too_many_scores(found);
  return problem.empty() ? unknown_label(metric, found) : problem;
}

// Why the metric does not fit the loss or the data; empty if it does. found: of the loss.
std::string misfit(const RunSettings& settings, const SessionData& data, std::string_view metric,
                   const EvaluationMetrics::Settings& found) {
  const std::string loss(settings.loss->name);
  if (is_error_metric(metric) || metric == "r2")
    return settings.loss->estimates
               ? ""
               : fmt::format("{} is for losses that compare numbers, such as mse_loss, not for {}",
                             metric, loss);
  if (has_labels(*settings.loss)) return misfit_of_labels(metric, loss, found);
  if (!by_classes(settings, data))
    return fmt::format("{} needs class targets and a loss such as cross_entropy{}{}", metric,
                       is_count_metric(without_label(metric)) || without_label(metric) == "auc"
                           ? ", or targets that are 0 or 1 and a loss such as bce_with_logits_loss"
                           : "",
                       settings.loss->classes ? "; here the targets are numbers" : "");
  if (without_label(metric) == "auc") return misfit_of_auc(metric, settings, found);
  if (metric == "perplexity" && !(settings.loss->mean_likelihood &&
                                  settings.loss->mean_likelihood(settings.spec.loss.settings)))
    return fmt::format(
        "perplexity is the exponential of the mean cross entropy, so {} must have the reduction "
        "'mean', and neither class weights nor label_smoothing",
        loss);
  if (const int64_t k = top_k(metric); k > found.classes)
    return fmt::format("{} needs at least {} classes, but the model has {} scores per target",
                       metric, k, found.classes);
  if (metric == "confusion_matrix" && found.classes > kMostMatrix)
    return fmt::format("the confusion matrix of {} classes is too large; at most {} are possible",
                       found.classes, kMostMatrix);
  return unknown_label(metric, found);
}

// The most samples that a shard has in an evaluation.
int64_t most_samples(const BatchPartitioner& batches) {
  std::vector<int64_t> samples;
  StepRows rows;
  for (int64_t step = 0; step < batches.steps(); ++step) {
    batches.step(step, rows);
    for (const std::vector<ShardRows>& micro : rows.micro) {
      samples.resize(std::max(samples.size(), micro.size()));
      for (size_t s = 0; s < micro.size(); ++s) samples[s] += micro[s].rows.count();
    }
  }
  return samples.empty() ? 0 : std::ranges::max(samples);
}

// The scores of classes that auc keeps.
LabelMetrics::Settings scores_of(const EvaluationMetrics::Settings& found, const Shape& output,
                                 const BatchPartitioner& batches) {
  return {.labels = found.classes == 2 ? 1 : found.classes,
          .positions = most_samples(batches) * output.tail(1).elements() /
                       std::max<int64_t>(found.classes, 1)};
}

LabelMetrics::Settings labels_of(const LossType& loss, const Shape& output, bool keeps_scores,
                                 const BatchPartitioner& batches) {
  LabelMetrics::Settings out;
  out.labels = output.rank() > 1 ? output[1] : 1;
  out.threshold = loss.outputs == OutputKind::probabilities ? 0.5F : 0;
  if (keeps_scores)
    out.positions = most_samples(batches) * (output.rank() > 2 ? output.tail(2).elements() : 1);
  return out;
}

// Runs that evaluate a validation set evaluate the test set only when they end.
void check_set(const Spec& spec, const std::string& metric, std::string_view key, Diagnostics& d) {
  const std::string_view set = set_of(metric),
                         evaluated = spec.data.validation.on() ? "validation" : "test";
  if (!set.empty() && set != evaluated)
    d.error(spec.at(key), fmt::format("'{0}' is not known during training, which evaluates the {1} "
                                      "set; write {1}.{2}",
                                      metric, evaluated, without_set(metric)));
}

std::vector<float> first_target(const SessionData& data) {
  std::vector<float> out(static_cast<size_t>(data.test_loader->target().shape.elements()));
  const uint32_t first = data.test_rows.empty() ? 0 : data.test_rows.front();
  if (data.test->made) data.test_loader->targets(std::span(&first, 1), out.data());
  return out;
}

// Units of the data in one unit of the targets, for each element of a sample. Empty: 1 for each.
std::vector<double> units_of(const DataSpec& spec, const TensorDesc& target) {
  std::vector<double> out;
  for (const Choice& t : spec.target_transforms) {
    const auto units = static_cast<const TargetTransformType*>(t.what)->units;
    if (units == nullptr) continue;
    out.resize(static_cast<size_t>(target.shape.elements()), 1);
    const std::vector<double> own = units(t.settings, target);
    for (size_t i = 0; i < out.size(); ++i) out[i] *= own[i];
  }
  return out;
}

// The data's own value where a target is 0, for each element of a sample. Empty: 0 for each.
std::vector<double> zeros_of(const DataSpec& spec, const TensorDesc& target) {
  std::vector<float> out;
  for (auto t = spec.target_transforms.rbegin(); t != spec.target_transforms.rend(); ++t) {
    const auto undo = static_cast<const TargetTransformType*>(t->what)->undo;
    if (undo == nullptr) continue;
    out.resize(static_cast<size_t>(target.shape.elements()));
    undo(t->settings, {target, reinterpret_cast<std::byte*>(out.data())});
  }
  return {out.begin(), out.end()};
}

}  // namespace

std::string metric_of_best(const Spec& spec, const SessionData& data) {
  const std::string& best = spec.save.best;
  if (!spec.save.on || best == "none") return "";
  return best.empty() && data.evaluated == EvaluatedSet::validation
             ? "loss"
             : std::string(without_set(best));
}

std::string metric_of_early_stop(const Spec& spec) {
  const EarlyStopSpec& stop = spec.early_stop;
  if (stop.patience == 0) return "";
  return stop.metric.empty() ? "loss" : std::string(without_set(stop.metric));
}

EvaluationMetrics metrics_of(const RunSettings& settings, const SessionData& data,
                             const SessionBatches& batches, const CompiledModel& model,
                             Diagnostics& d) {
  if (!data.test) {
    const auto needs = [&](const std::string& metric, std::string_view key) {
      if (!metric.empty())
        d.error(settings.spec.at(key),
                fmt::format("'{}' needs evaluations: write `data.validation: 0.1`, or `evaluate: "
                            "true` to use the test set; `{}=none` trains without",
                            key, key));
    };
    needs(settings.spec.save.on ? metric_of_best(settings.spec, data) : "", "save.best");
    needs(metric_of_early_stop(settings.spec), "early_stop");
    return {};
  }
  check_set(settings.spec, settings.spec.save.best, "save.best", d);
  check_set(settings.spec, settings.spec.early_stop.metric, "early_stop.metric", d);
  const Shape& output = model.graph[model.graph.output].desc.shape;
  EvaluationMetrics::Settings out;
  if (by_classes(settings, data)) {
    out.class_dim = settings.loss->class_dim(settings.spec.loss.settings, output);
    out.classes = output[out.class_dim];
    out.ignore_index = settings.loss->ignore_index
                           ? settings.loss->ignore_index(settings.spec.loss.settings)
                           : -100;
    out.label_names = label_names(data, out.classes);
  }
  const std::vector<Located<std::string>> metrics = wanted(settings, data);
  const bool auc = std::ranges::any_of(
      metrics, [](const auto& metric) { return without_label(metric.value) == "auc"; });
  if (out.classes > 0 && auc) out.labels = scores_of(out, output, *batches.test);
  if (has_labels(*settings.loss)) {
    out.labels = labels_of(*settings.loss, output, auc, *batches.test);
    out.label_names = label_names(data, out.labels.labels);
  }
  for (const Located<std::string>& metric : metrics) {
    const std::string problem = misfit(settings, data, metric.value, out);
    if (!problem.empty())
      d.error(metric.where.file ? metric.where : settings.spec.at("evaluate.metrics"), problem);
    out.names.push_back(metric.value);
  }
  if (!d.ok()) return {};
  if (settings.loss->estimates) {
    out.origin = first_target(data);
    out.units = units_of(settings.spec.data, data.test_loader->target());
    out.zeros = zeros_of(settings.spec.data, data.test_loader->target());
  }
  return EvaluationMetrics(std::move(out));
}

}  // namespace dpt
