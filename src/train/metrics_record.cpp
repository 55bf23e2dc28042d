#include "train/metrics_record.h"

#include <algorithm>

#include "spec/metric_name.h"
#include "train/metrics_file.h"

namespace dpt {
namespace {

// Adds the members of an object; returns whether they are numbers, texts and objects of these.
bool add_members(const Json& object, const std::string& prefix, MetricsRecord& out) {
  for (const auto& [key, value] : object.members()) {
    const std::string name = prefix + key;
    if (value.is_object()) {
      if (!add_members(value, name + ".", out)) return false;
    } else if (const std::string* const text = value.text()) {
      out.texts.emplace_back(name, *text);
    } else if (const auto yes = value.boolean()) {
      out.numbers.emplace_back(name, *yes ? 1 : 0);
    } else if (const auto number = number_at(object, key)) {
      out.numbers.emplace_back(prefix.empty() ? current_name(name) : name, *number);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<double> MetricsRecord::number(std::string_view key) const {
  const auto found = std::ranges::find(numbers, key, [](const auto& n) { return n.first; });
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

std::string_view MetricsRecord::text(std::string_view key) const {
  const auto found = std::ranges::find(texts, key, [](const auto& t) { return t.first; });
  return found == texts.end() ? std::string_view() : std::string_view(found->second);
}

RecordKind MetricsRecord::kind() const {
  if (number("final")) return RecordKind::final;
  if (number("evaluation")) return RecordKind::evaluation;
  if (number("step")) return RecordKind::step;
  return number("epoch") ? RecordKind::epoch : RecordKind::other;
}

std::optional<MetricsRecord> parse_record(std::string_view line) {
  const auto json = record_of(line);
  MetricsRecord out;
  if (!json || !add_members(*json, "", out)) return {};
  return out;
}

}  // namespace dpt
