#include "report/metric_text.h"

#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/status_line.h"
#include "spec/metric_name.h"

namespace dpt {
namespace {

constexpr std::string_view kStep = "step.", kNorms = "grad_norms.";

std::string_view group_by_label(std::string_view mean) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, kMetricsByLabel.size()>
      kGroups = {{{"accuracy", "accuracy by label"},
                  {"precision", "precision by label"},
                  {"recall", "recall by label"},
                  {"f1", "f1 by label"},
                  {"auc", "auc by label"}}};
  for (const auto& [metric, group] : kGroups)
    if (metric == mean) return group;
  return mean;
}

}  // namespace

bool in_percent(std::string_view name) { return is_share(name) || name == "data_wait"; }

std::string value_text(std::string_view name, double value) {
  constexpr double kLarge = 1e5, kSmall = 1e-3;
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (in_percent(name)) return fmt::format("{:.2f} %", 100 * value);
  if (name == "samples_per_second") return samples_per_second(value);
  if (group_of(name) == "seconds") return fmt::format("{:.2f} s", value);
  if (name == "lr") return fmt::format("{:.4g}", value);
  if (value != 0 && (std::abs(value) >= kLarge || std::abs(value) < kSmall))
    return fmt::format("{:.4g}", value);
  return fmt::format("{:.4f}", value);
}

std::string title_of(std::string_view name) {
  if (name == "lr") return "learning rate";
  if (name == "samples_per_second") return "samples per second";
  if (name == "data_wait") return "share of time waiting for data";
  if (name == "norm") return "norm of the gradients";
  if (name == "noise_scale") return "gradient noise scale";
  if (name == "seconds") return "seconds of an epoch";
  if (name == "evaluation_seconds") return "seconds of evaluation";
  if (name.starts_with(kNorms)) return std::string(name.substr(kNorms.size()));
  return std::string(name);
}

std::string_view group_of(std::string_view name) {
  if (name.starts_with(kNorms)) return kNorms.substr(0, kNorms.size() - 1);
  if (name.starts_with(kStep)) return name.substr(kStep.size());
  if (name == "evaluation_seconds") return "seconds";
  if (is_by_label(name)) return group_by_label(without_label(without_set(name)));
  return without_set(name);
}

bool is_result(std::string_view name) { return name == "loss" || !set_of(name).empty(); }

}  // namespace dpt
