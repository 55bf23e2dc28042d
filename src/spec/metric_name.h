// The names of metrics in specs, messages and files: loss, accuracy, top5 (any topK), f1,
// perplexity, mae, r2, and confusion_matrix, which has no number. A qualified name begins with the
// set: validation.accuracy, test.loss, train.loss.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

namespace dpt {

// "accuracy" of "validation.accuracy"; a name without a set is returned as it is.
inline std::string_view without_set(std::string_view metric) {
  for (const std::string_view set : {"train.", "validation.", "test."})
    if (metric.starts_with(set)) return metric.substr(set.size());
  return metric;
}

// K of "topK", such as 5 of "top5"; 0 if the name is no such metric.
inline int64_t top_k(std::string_view metric) {
  if (!metric.starts_with("top") || metric.size() < 4 || metric[3] == '0') return 0;
  int64_t k = 0;
  const char* const end = metric.data() + metric.size();
  const auto [rest, error] = std::from_chars(metric.data() + 3, end, k);
  return error == std::errc() && rest == end && k > 0 ? k : 0;
}

// Whether a smaller value of the metric is better: of loss, perplexity and mae. A larger one is of
// accuracy, topK, f1 and r2. The name may be qualified.
inline bool lower_is_better(std::string_view metric) {
  const std::string_view name = without_set(metric);
  return name == "loss" || name == "perplexity" || name == "mae";
}

}  // namespace dpt
