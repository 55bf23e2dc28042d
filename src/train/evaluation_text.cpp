#include "train/evaluation_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "formats/csv_text.h"
#include "spec/metric_name.h"
#include "train/progress.h"

namespace dpt {
namespace {

std::string capitalized(std::string_view word) {
  std::string out(word);
  out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

}  // namespace

std::string evaluation_text(std::string_view set, const Evaluation& e, int digits) {
  const std::string title = capitalized(set);
  std::string out = fmt::format("{} loss: {:.{}f}", title, unsigned_nan(e.loss), digits);
  if (e.accuracy >= 0)
    out += fmt::format(", {}: {:.2f} %", set == "test" ? "Accuracy" : title + " accuracy",
                       100 * e.accuracy);
  for (const auto& [name, value] : e.metrics)
    out += is_share(name) ? fmt::format(", {} {}: {:.2f} %", title, name, 100 * value)
                          : fmt::format(", {} {}: {:.4f}", title, name, unsigned_nan(value));
  return out;
}

void add_evaluation(Json& record, std::string_view set, const Evaluation& e) {
  constexpr int kDigits = 9, kDecimals = 6;
  const auto add = [&](std::string_view name, Json value) {
    record.add(fmt::format("{}.{}", set, name), std::move(value));
  };
  add("loss", Json::rounded(e.loss, kDigits));
  if (e.accuracy >= 0) add("accuracy", Json::decimals(e.accuracy, kDecimals));
  for (const auto& [name, value] : e.metrics) add(name, Json::rounded(value, kDigits));
  for (const auto& [name, value] : e.by_label)
    if (std::ranges::find(e.metrics, name, &NamedValue::name) == e.metrics.end())
      add(name, Json::rounded(value, kDigits));
}

std::string confusion_csv(const Evaluation& e, std::span<const std::string> class_names) {
  const auto size = static_cast<double>(e.confusion_matrix.size());
  const auto classes = std::max<size_t>(1, static_cast<size_t>(std::lround(std::sqrt(size))));
  const auto name = [&](size_t c) {
    return class_names.size() == classes ? csv_text(class_names[c]) : std::to_string(c);
  };
  std::string out = "actual";
  for (size_t c = 0; c < classes; ++c) out += "," + name(c);
  for (size_t i = 0; i < e.confusion_matrix.size(); ++i) {
    if (i % classes == 0) out += "\n" + name(i / classes);
    out += fmt::format(",{}", e.confusion_matrix[i]);
  }
  return out + "\n";
}

}  // namespace dpt
