// The names of metrics in specs, options, messages and files. A metric is loss, accuracy, top5 (any
// topK), precision, recall, f1, auc, perplexity, mae, mse, rmse, mape, r2, or confusion_matrix,
// which has no number. That of one class or label has its name: f1.cat. A full name begins with the
// set: test.accuracy, validation.loss, test.f1.cat. The training loss is `loss`, and that of a step
// `step.loss`. `best.` before a name means its best value so far.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace dpt {

inline constexpr std::string_view kBestPrefix = "best.";
inline constexpr std::array<std::string_view, 3> kMetricSets = {"train", "validation", "test"};

// "validation" of "validation.accuracy"; empty: the name has no set.
inline std::string_view set_of(std::string_view metric) {
  for (const std::string_view set : kMetricSets)
    if (metric.size() > set.size() && metric.starts_with(set) && metric[set.size()] == '.')
      return set;
  return "";
}

// "accuracy" of "validation.accuracy"; a name without a set is returned as it is.
inline std::string_view without_set(std::string_view metric) {
  const std::string_view set = set_of(metric);
  return set.empty() ? metric : metric.substr(set.size() + 1);
}

// "accuracy" of "best.accuracy"; other names are returned as they are.
inline std::string_view without_best(std::string_view metric) {
  return metric.starts_with(kBestPrefix) ? metric.substr(kBestPrefix.size()) : metric;
}

// K of "topK", such as 5 of "top5"; 0 if the name is no such metric.
inline int64_t top_k(std::string_view metric) {
  if (!metric.starts_with("top") || metric.size() < 4 || metric[3] == '0') return 0;
  int64_t k = 0;
  const char* const end = metric.data() + metric.size();
  const auto [rest, error] = std::from_chars(metric.data() + 3, end, k);
  return error == std::errc() && rest == end && k > 0 ? k : 0;
}

// Metrics that are a mean over classes or labels, each of which has one, too: f1.cat.
inline constexpr std::array<std::string_view, 5> kMetricsByLabel = {"accuracy", "precision",
                                                                    "recall", "f1", "auc"};

// "cat" of "f1.cat"; empty: the name is not that of a class's or label's metric. The name has no
// set.
inline std::string_view label_of(std::string_view metric) {
  for (const std::string_view mean : kMetricsByLabel)
    if (metric.size() > mean.size() + 1 && metric.starts_with(mean) && metric[mean.size()] == '.')
      return metric.substr(mean.size() + 1);
  return "";
}

// "f1" of "f1.cat", "test.f1" of "test.f1.cat"; other names are returned as they are.
inline std::string_view without_label(std::string_view metric) {
  const std::string_view label = label_of(without_set(metric));
  return label.empty() ? metric : metric.substr(0, metric.size() - label.size() - 1);
}

// Whether the metric is that of one class or label: "f1.cat", "best.test.f1.cat".
inline bool is_by_label(std::string_view metric) {
  return !label_of(without_set(without_best(metric))).empty();
}

// The metrics with one number, besides topK and those of a class or label.
inline constexpr std::array<std::string_view, 12> kNumberMetrics = {
    "loss",       "accuracy", "precision", "recall", "f1",   "auc",
    "perplexity", "mae",      "mse",       "rmse",   "mape", "r2"};

// Metrics of targets that are numbers: how far predictions are from them.
inline constexpr std::array<std::string_view, 4> kErrorMetrics = {"mae", "mse", "rmse", "mape"};

inline bool is_error_metric(std::string_view name) {
  for (const std::string_view known : kErrorMetrics)
    if (name == known) return true;
  return false;
}

// Whether this is a metric with one number, without a set.
inline bool is_number_metric(std::string_view name) {
  for (const std::string_view known : kNumberMetrics)
    if (name == known) return true;
  return top_k(name) > 0 || !label_of(name).empty();
}

// The name that version 0.1.0 wrote as "test_accuracy", or in tables as "best_accuracy" or
// "last_test_loss": "test.accuracy", "best.accuracy", "test.loss"; "validation.loss" of "val_loss".
// Names of no metric are returned as they are.
inline std::string current_name(std::string_view name) {
  if (name.starts_with(kBestPrefix))
    return std::string(kBestPrefix) + current_name(without_best(name));
  std::string_view rest = name;
  std::string before;
  if (rest.starts_with("best_")) before = kBestPrefix;
  if (rest.starts_with("best_") || rest.starts_with("last_")) rest.remove_prefix(5);
  for (const std::string_view set : {"train", "validation", "test", "val"})
    if (rest.size() > set.size() && rest.starts_with(set) &&
        (rest[set.size()] == '_' || rest[set.size()] == '.')) {
      before += set == "val" ? "validation" : set;
      before += '.';
      rest.remove_prefix(set.size() + 1);
      break;
    }
  return is_number_metric(rest) ? before + std::string(rest) : std::string(name);
}

// Whether a smaller value of the metric is better: of loss, perplexity and kErrorMetrics. A larger
// one is of all others. The name may be a full one.
inline bool lower_is_better(std::string_view metric) {
  const std::string_view name = without_set(without_best(metric));
  return name == "loss" || name == "perplexity" || is_error_metric(name);
}

// Whether the metric is a share of samples, shown in percent. The name may be a full one.
inline bool is_share(std::string_view metric) {
  const std::string_view name = without_label(without_set(without_best(metric)));
  return name == "accuracy" || top_k(name) > 0;
}

}  // namespace dpt
