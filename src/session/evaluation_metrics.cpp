#include "session/evaluation_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/half.h"
#include "session/compiled_model.h"
#include "session/run_settings.h"
#include "session/session_data.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

constexpr size_t kPerColumn = 4;       // sums of each column of numbers: |y - t|, (y - t)^2, d, d^2
constexpr int64_t kMostMatrix = 1000;  // classes of a confusion matrix: 8 MB for each shard

// The elements in row-major order, as floats. `copy` keeps them where the view's are others.
std::span<const float> plain_floats(const TensorView& v, std::vector<float>& copy) {
  const auto count = static_cast<size_t>(v.desc.shape.elements());
  const bool plain = same_order(v.desc.shape, v.desc.layout, Layout::plain);
  if (plain && v.desc.dtype == DType::f32) return {reinterpret_cast<const float*>(v.data), count};
  const size_t element = size_of(v.desc.dtype);
  std::vector<std::byte> bytes(count * element);
  copy_layout(v.desc.shape, element, v.desc.layout, v.data, Layout::plain, bytes.data());
  copy.resize(count);
  if (v.desc.dtype == DType::f32) {
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    return copy;
  }
  require(is_half(v.desc.dtype), "outputs are f32 or half");
  for (size_t i = 0; i < count; ++i) {
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + i * element, element);
    copy[i] = v.desc.dtype == DType::bf16 ? from_bf16(half) : from_f16(half);
  }
  return copy;
}

// Whether score a of class i comes before score b of class j: the greater one, NaN first, and of
// equal ones that of the lower class. The first one is PyTorch's argmax.
bool before(float a, size_t i, float b, size_t j) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && (!std::isnan(b) || i < j);
  return a > b || (a == b && i < j);
}

std::vector<int64_t> tops_in(const std::vector<std::string>& names) {
  std::vector<int64_t> out;
  for (const std::string& name : names)
    if (const int64_t k = top_k(name); k > 0) out.push_back(k);
  return out;
}

}  // namespace

EvaluationMetrics::EvaluationMetrics(Settings settings)
    : settings_(std::move(settings)),
      tops_(tops_in(settings_.names)),
      matrix_(has("confusion_matrix")),
      by_class_(matrix_ || has("f1")),
      numbers_(has("mae") || has("r2")),
      of_classes_(of_tops_ + tops_.size()),
      of_columns_(of_classes_) {
  const auto classes = static_cast<size_t>(settings_.classes);
  if (by_class_) of_columns_ += matrix_ ? classes * classes : 3 * classes;
  if (!tops_.empty() || by_class_ || numbers_)
    size_ = of_columns_ + (numbers_ ? kPerColumn * settings_.origin.size() : 0);
}

bool EvaluationMetrics::has(std::string_view name) const {
  return std::ranges::find(settings_.names, name) != settings_.names.end();
}

void EvaluationMetrics::add(const TensorView& output, const TensorView& target,
                            std::span<double> sums) const {
  std::vector<float> of_output, of_target;
  const std::span<const float> y = plain_floats(output, of_output);
  if (numbers_) return add_numbers(y, plain_floats(target, of_target), sums);
  const std::span<const int32_t> targets(reinterpret_cast<const int32_t*>(target.data),
                                         static_cast<size_t>(target.desc.shape.elements()));
  add_classes(y, output.desc.shape, targets, sums);
}

void EvaluationMetrics::add_classes(std::span<const float> output, const Shape& shape,
                                    std::span<const int32_t> targets,
                                    std::span<double> sums) const {
  const auto classes = static_cast<size_t>(settings_.classes);
  const auto inner =
      static_cast<size_t>(shape.tail(settings_.class_dim + 1).elements());  // 1 for [N, C]
  for (size_t position = 0; position < targets.size(); ++position) {
    if (targets[position] == settings_.ignore_index) continue;
    const auto target = static_cast<size_t>(targets[position]);
    const size_t first = position / inner * classes * inner + position % inner;
    const auto score = [&](size_t c) { return output[first + c * inner]; };
    size_t best = 0;
    int64_t ahead = 0;  // classes before the target
    for (size_t c = 0; c < classes; ++c) {
      if (before(score(c), c, score(best), best)) best = c;
      if (before(score(c), c, score(target), target)) ++ahead;
    }
    sums[0] += 1;
    for (size_t t = 0; t < tops_.size(); ++t) sums[of_tops_ + t] += ahead < tops_[t] ? 1 : 0;
    if (!by_class_) continue;
    double* const counts = &sums[of_classes_];
    if (matrix_) {
      counts[target * classes + best] += 1;
    } else {
      counts[target] += 1;
      counts[classes + best] += 1;
      if (target == best) counts[2 * classes + best] += 1;
    }
  }
}

void EvaluationMetrics::add_numbers(std::span<const float> output, std::span<const float> targets,
                                    std::span<double> sums) const {
  const size_t columns = settings_.origin.size();
  const size_t samples = targets.size() / columns;
  sums[0] += static_cast<double>(samples);
  for (size_t i = 0; i < targets.size(); ++i) {
    const size_t column = i % columns;
    double* const of_column = &sums[of_columns_ + kPerColumn * column];
    const double t = targets[i], error = output[i] - t, d = t - settings_.origin[column];
    of_column[0] += std::abs(error);
    of_column[1] += error * error;
    of_column[2] += d;
    of_column[3] += d * d;
  }
}

// scikit-learn's f1_score(average="macro"): the mean over the classes that are a target or a
// prediction. A class that is never predicted right has 0.
double EvaluationMetrics::f1(std::span<const double> sums) const {
  const auto classes = static_cast<size_t>(settings_.classes);
  const std::span<const double> counts = sums.subspan(of_classes_);
  double sum = 0, present = 0;
  for (size_t c = 0; c < classes; ++c) {
    double actual = 0, predicted = 0, right = 0;
    if (matrix_) {
      right = counts[c * classes + c];
      for (size_t other = 0; other < classes; ++other) {
        actual += counts[c * classes + other];
        predicted += counts[other * classes + c];
      }
    } else {
      actual = counts[c], predicted = counts[classes + c], right = counts[2 * classes + c];
    }
    if (actual + predicted == 0) continue;
    present += 1;
    sum += 2 * right / (actual + predicted);
  }
  return present > 0 ? sum / present : std::nan("");
}

// scikit-learn's r2_score: the mean over the columns. A column whose targets are all equal has 1 if
// it is predicted exactly, else 0.
double EvaluationMetrics::r2(std::span<const double> sums) const {
  const size_t columns = settings_.origin.size();
  const double samples = sums[0];
  if (samples < 2) return std::nan("");
  double sum = 0;
  for (size_t column = 0; column < columns; ++column) {
    const double* const of_column = &sums[of_columns_ + kPerColumn * column];
    const double variation = of_column[3] - of_column[2] * of_column[2] / samples;
    if (variation > 0)
      sum += 1 - of_column[1] / variation;
    else
      sum += of_column[1] == 0 ? 1 : std::isnan(of_column[1]) ? of_column[1] : 0;
  }
  return sum / static_cast<double>(columns);
}

std::vector<NamedValue> EvaluationMetrics::values(std::span<const double> sums, double loss) const {
  std::vector<NamedValue> out;
  for (const std::string& name : settings_.names) {
    if (const int64_t k = top_k(name); k > 0) {
      const auto at = static_cast<size_t>(std::ranges::find(tops_, k) - tops_.begin());
      out.push_back({name, sums[of_tops_ + at] / sums[0]});
    } else if (name == "f1") {
      out.push_back({name, f1(sums)});
    } else if (name == "perplexity") {
      out.push_back({name, std::exp(loss)});
    } else if (name == "mae") {
      double total = 0;
      for (size_t c = 0; c < settings_.origin.size(); ++c)
        total += sums[of_columns_ + kPerColumn * c];
      out.push_back({name, total / (sums[0] * static_cast<double>(settings_.origin.size()))});
    } else if (name == "r2") {
      out.push_back({name, r2(sums)});
    }
  }
  return out;
}

std::vector<int64_t> EvaluationMetrics::confusion_matrix(std::span<const double> sums) const {
  if (!matrix_) return {};
  const auto classes = static_cast<size_t>(settings_.classes);
  std::vector<int64_t> out(classes * classes);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(sums[of_classes_ + i]);
  return out;
}

namespace {

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

// Why the metric does not fit the loss or the data; empty if it does.
std::string misfit(const RunSettings& settings, const SessionData& data, std::string_view metric,
                   int64_t classes) {
  const std::string loss(settings.loss->name);
  if (metric == "mae" || metric == "r2")
    return settings.loss->estimates
               ? ""
               : fmt::format("{} is for losses that compare numbers, such as mse_loss, not for {}",
                             metric, loss);
  if (!by_classes(settings, data))
    return fmt::format("{} needs class targets and a loss such as cross_entropy{}", metric,
                       settings.loss->classes ? ", but the targets are numbers" : "");
  if (metric == "perplexity" && !(settings.loss->mean_likelihood &&
                                  settings.loss->mean_likelihood(settings.spec.loss.settings)))
    return fmt::format(
        "perplexity is the exponential of the mean cross entropy, so {} must have the reduction "
        "'mean', and neither class weights nor label_smoothing",
        loss);
  if (const int64_t k = top_k(metric); k > classes)
    return fmt::format("{} needs at least {} classes, but the model has {} scores per target",
                       metric, k, classes);
  if (metric == "confusion_matrix" && classes > kMostMatrix)
    return fmt::format("the confusion matrix of {} classes is too large; at most {} are possible",
                       classes, kMostMatrix);
  return "";
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
                             const CompiledModel& model, Diagnostics& d) {
  if (!data.test) {
    const auto needs = [&](const std::string& metric, std::string_view key) {
      if (!metric.empty())
        d.error(settings.spec.at(key),
                fmt::format("'{}' needs evaluations: write `data.validation: 0.1`, or `evaluate: "
                            "true` to use the test set",
                            key));
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
  }
  for (const Located<std::string>& metric : wanted(settings, data)) {
    const std::string problem = misfit(settings, data, metric.value, out.classes);
    if (!problem.empty())
      d.error(metric.where.file ? metric.where : settings.spec.at("evaluate.metrics"), problem);
    out.names.push_back(metric.value);
  }
  if (!d.ok()) return {};
  if (settings.loss->estimates) out.origin = first_target(data);
  return EvaluationMetrics(std::move(out));
}

}  // namespace dpt
