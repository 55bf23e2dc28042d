#include "session/evaluation_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/half.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

// Sums of each column of numbers: |y - t|, (y - t)^2, d, d^2, |y - t| / |t| of the data's values.
constexpr size_t kPerColumn = 5;

// The target before it was scaled to the float t: of all numbers that scale to it, the one with the
// fewest decimal digits, as a file has it. t * unit + zero alone would make a tiny number of a 0.
double before_scaling(double t, double unit, double zero) {
  const double undone = t * unit + zero;
  const double half_step = (std::abs(t) * unit + std::abs(zero)) * 0x1p-24;  // both are floats
  if (half_step == 0 || !std::isfinite(half_step)) return undone;
  for (double scale = std::pow(10, -std::ceil(std::log10(std::abs(undone) + half_step)));;
       scale *= 10) {
    const double shorter = std::round(undone * scale) / scale;
    if (std::abs(shorter - undone) <= half_step) return shorter;
    if (scale * half_step > 1) return undone;
  }
}

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

std::string label_name(const std::vector<std::string>& names, int64_t label) {
  const auto i = static_cast<size_t>(label);
  return i < names.size() ? names[i] : std::to_string(label);
}

// Whether one of the names is a mean over classes or labels, or the metric of one of them.
bool any_by_label(const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [](const std::string& name) {
    const std::string_view mean = without_label(name);
    return is_count_metric(mean) || mean == "auc";
  });
}

// The accuracy of classes does not need their counts.
bool any_by_class(const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [](const std::string& name) {
    return is_count_metric(without_label(name)) && name != "accuracy";
  });
}

// log(exp(a) + exp(b))
double log_add(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  const double high = std::max(a, b), low = std::min(a, b);
  if (std::isinf(high) || std::isinf(low)) return high;
  return high + std::log1p(std::exp(low - high));
}

// The logarithms of p / (1 - p) for the probabilities p that softmax makes of scores or of
// log-probabilities. Their order is that of p, but they do not all become 1 where p does. For two
// classes they are differences of the scores, without rounding by exp and log.
void log_odds(std::span<const float> scores, std::vector<double>& others, std::span<float> out) {
  const size_t classes = scores.size();
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  others.assign(classes, kNone);
  double before = kNone, after = kNone;  // the sums over the classes before c, and after it
  for (size_t c = 0; c < classes; ++c) {
    others[c] = before;
    before = log_add(before, static_cast<double>(scores[c]));
  }
  for (size_t c = classes; c-- > 0;) {
    out[c] = static_cast<float>(static_cast<double>(scores[c]) - log_add(others[c], after));
    after = log_add(after, static_cast<double>(scores[c]));
  }
}

}  // namespace

EvaluationMetrics::EvaluationMetrics(Settings settings)
    : settings_(std::move(settings)),
      labels_(any_by_label(settings_.names) ? LabelMetrics(settings_.labels) : LabelMetrics()),
      tops_(tops_in(settings_.names)),
      matrix_(has("confusion_matrix")),
      by_class_(settings_.classes > 0 && (matrix_ || any_by_class(settings_.names))),
      numbers_(has("r2") || std::ranges::any_of(settings_.names, is_error_metric)),
      of_classes_(of_tops_ + tops_.size()),
      of_columns_(of_classes_) {
  const auto classes = static_cast<size_t>(settings_.classes);
  if (by_class_) of_columns_ += matrix_ ? classes * classes : 3 * classes;
  if (by_labels()) {
    size_ = labels_.size();
    return;
  }
  if (!tops_.empty() || by_class_ || numbers_ || labels_.labels() > 0)
    size_ = of_columns_ + (numbers_ ? kPerColumn * settings_.origin.size() : 0);
  of_labels_ = size_;
  size_ += labels_.size();
}

size_t EvaluationMetrics::summed() const {
  return labels_.labels() > 0 ? of_labels_ + labels_.summed() : size_;
}

bool EvaluationMetrics::has(std::string_view name) const {
  return std::ranges::find(settings_.names, name) != settings_.names.end();
}

void EvaluationMetrics::add(const TensorView& output, const TensorView& target,
                            std::span<double> shard) const {
  std::vector<float> of_output, of_target;
  const std::span<const float> y = plain_floats(output, of_output);
  if (by_labels()) return labels_.add(y, output.desc.shape, plain_floats(target, of_target), shard);
  if (numbers_) return add_numbers(y, plain_floats(target, of_target), shard);
  const std::span<const int32_t> targets(reinterpret_cast<const int32_t*>(target.data),
                                         static_cast<size_t>(target.desc.shape.elements()));
  add_classes(y, output.desc.shape, targets, shard);
  if (labels_.labels() > 0) add_class_scores(y, output.desc.shape, targets, shard);
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

void EvaluationMetrics::add_class_scores(std::span<const float> output, const Shape& shape,
                                         std::span<const int32_t> targets,
                                         std::span<double> shard) const {
  const auto classes = static_cast<size_t>(settings_.classes);
  const auto labels = static_cast<size_t>(labels_.labels());
  const size_t first_label = classes - labels;  // class 1 alone of two
  const auto inner = static_cast<size_t>(shape.tail(settings_.class_dim + 1).elements());
  std::vector<float> scores(classes), odds(classes), kept, actual;
  std::vector<double> others;
  for (size_t position = 0; position < targets.size(); ++position) {
    if (targets[position] == settings_.ignore_index) continue;
    const size_t first = position / inner * classes * inner + position % inner;
    for (size_t c = 0; c < classes; ++c) scores[c] = output[first + c * inner];
    log_odds(scores, others, odds);
    for (size_t c = first_label; c < classes; ++c) {
      kept.push_back(odds[c]);
      actual.push_back(std::cmp_equal(targets[position], c) ? 1 : 0);
    }
  }
  const auto counted = static_cast<int64_t>(kept.size() / labels);
  labels_.add(kept, {counted, labels_.labels()}, actual, shard.subspan(of_labels_));
}

void EvaluationMetrics::add_numbers(std::span<const float> output, std::span<const float> targets,
                                    std::span<double> sums) const {
  const size_t columns = settings_.origin.size();
  const size_t samples = targets.size() / columns;
  const bool relative = has("mape");
  constexpr double kSmallest = std::numeric_limits<double>::epsilon();  // as scikit-learn's
  sums[0] += static_cast<double>(samples);
  for (size_t i = 0; i < targets.size(); ++i) {
    const size_t column = i % columns;
    double* const of_column = &sums[of_columns_ + kPerColumn * column];
    const double t = targets[i], error = output[i] - t, d = t - settings_.origin[column];
    of_column[0] += std::abs(error);
    of_column[1] += error * error;
    of_column[2] += d;
    of_column[3] += d * d;
    if (!relative) continue;
    const double target = settings_.zeros.empty()
                              ? t * unit(column)
                              : before_scaling(t, unit(column), settings_.zeros[column]);
    of_column[4] += std::abs(error) * unit(column) / std::max(std::abs(target), kSmallest);
  }
}

LabelCounts EvaluationMetrics::counts_of(std::span<const double> sums, int64_t which) const {
  if (by_labels()) return labels_.counts(sums, which);
  const auto classes = static_cast<size_t>(settings_.classes), c = static_cast<size_t>(which);
  const std::span<const double> counts = sums.subspan(of_classes_);
  LabelCounts out{.all = sums[0]};
  if (matrix_) {
    out.right = counts[c * classes + c];
    for (size_t other = 0; other < classes; ++other) {
      out.actual += counts[c * classes + other];
      out.predicted += counts[other * classes + c];
    }
  } else {
    out.actual = counts[c], out.predicted = counts[classes + c];
    out.right = counts[2 * classes + c];
  }
  return out;
}

// scikit-learn's f1_score(average="macro"), and its precision_score and recall_score: the mean over
// the classes that are a target or a prediction. A class that is never predicted right has 0.
double EvaluationMetrics::mean_over_classes(std::string_view metric,
                                            std::span<const double> sums) const {
  double sum = 0, present = 0;
  for (int64_t c = 0; c < settings_.classes; ++c) {
    const LabelCounts counts = counts_of(sums, c);
    if (counts.actual + counts.predicted == 0) continue;
    present += 1;
    sum += counts.value(metric);
  }
  return present > 0 ? sum / present : std::nan("");
}

double EvaluationMetrics::of_label(std::string_view metric, int64_t label,
                                   std::span<const double> sums, Shards shards) const {
  return metric == "auc" ? auc(label, sums, shards) : counts_of(sums, label).value(metric);
}

double EvaluationMetrics::auc(int64_t label, std::span<const double> sums, Shards shards) const {
  std::vector<std::span<const double>> scores;
  for (const std::span<const double> shard : shards.empty() ? Shards(&sums, 1) : shards)
    scores.push_back(shard.subspan(of_labels_));
  return labels_.auc(scores, label);
}

// The mean over all labels, as scikit-learn's average="macro"; of auc over the labels that have
// one.
double EvaluationMetrics::mean_over_labels(std::string_view metric, std::span<const double> sums,
                                           Shards shards) const {
  double sum = 0, present = 0;
  for (int64_t l = 0; l < labels_.labels(); ++l) {
    const double value = of_label(metric, l, sums, shards);
    if (std::isnan(value)) continue;
    present += 1;
    sum += value;
  }
  return present > 0 ? sum / present : std::nan("");
}

// Of accuracy, precision, recall, f1 and auc, and of one class or label.
double EvaluationMetrics::by_name(std::string_view name, std::span<const double> sums,
                                  Shards shards) const {
  const std::string_view metric = without_label(name);
  if (metric == name)
    return by_labels() || metric == "auc" ? mean_over_labels(metric, sums, shards)
                                          : mean_over_classes(metric, sums);
  const int64_t count = std::max(labels_.labels(), settings_.classes);
  // Two classes have the same area, since each has the other's scores in reverse order.
  const bool pair = settings_.classes == 2 && metric == "auc";
  for (int64_t l = 0; l < count; ++l)
    if (label_name(settings_.label_names, l) == dpt::label_of(name))
      return of_label(metric, pair ? 0 : l, sums, shards);
  require(false, "metrics of labels that there are");
  return 0;
}

// scikit-learn's mean_absolute_error, mean_squared_error, root_mean_squared_error and
// mean_absolute_percentage_error of the data's own values: the mean over the columns, each in its
// units.
double EvaluationMetrics::error(std::string_view metric, std::span<const double> sums) const {
  const size_t columns = settings_.origin.size();
  double total = 0;
  for (size_t c = 0; c < columns; ++c) {
    const double* const of_column = &sums[of_columns_ + kPerColumn * c];
    if (metric == "mae")
      total += of_column[0] * unit(c);
    else if (metric == "mse")
      total += of_column[1] * unit(c) * unit(c);
    else if (metric == "rmse")
      total += std::sqrt(of_column[1] * sums[0]) * unit(c);
    else
      total += of_column[4];
  }
  return total / (sums[0] * static_cast<double>(columns));
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

std::vector<NamedValue> EvaluationMetrics::values(std::span<const double> sums, double loss,
                                                  Shards shards) const {
  std::vector<NamedValue> out;
  for (const std::string& name : settings_.names) {
    if (const int64_t k = top_k(name); k > 0) {
      const auto at = static_cast<size_t>(std::ranges::find(tops_, k) - tops_.begin());
      out.push_back({name, sums[of_tops_ + at] / sums[0]});
    } else if (name == "accuracy" && !by_labels()) {
      continue;
    } else if (is_count_metric(without_label(name)) || without_label(name) == "auc") {
      out.push_back({name, by_name(name, sums, shards)});
    } else if (name == "perplexity") {
      out.push_back({name, std::exp(loss)});
    } else if (is_error_metric(name)) {
      out.push_back({name, error(name, sums)});
    } else if (name == "r2") {
      out.push_back({name, r2(sums)});
    }
  }
  return out;
}

std::vector<NamedValue> EvaluationMetrics::by_label(std::span<const double> sums,
                                                    Shards shards) const {
  std::vector<NamedValue> out;
  if (!by_labels() || labels_.labels() < 2 || labels_.labels() > kMostByLabel) return out;
  for (const std::string& name : settings_.names)
    if (is_count_metric(name) || name == "auc")
      for (int64_t l = 0; l < labels_.labels(); ++l)
        out.push_back({fmt::format("{}.{}", name, label_name(settings_.label_names, l)),
                       of_label(name, l, sums, shards)});
  return out;
}

std::vector<int64_t> EvaluationMetrics::confusion_matrix(std::span<const double> sums) const {
  if (!matrix_) return {};
  const auto classes = static_cast<size_t>(settings_.classes);
  std::vector<int64_t> out(classes * classes);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(sums[of_classes_ + i]);
  return out;
}

}  // namespace dpt
