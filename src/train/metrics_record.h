// One record of metrics.jsonl, with its numbers and texts as flat lists.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dpt {

enum class RecordKind {
  step,        // a training step
  epoch,       // the end of an epoch
  evaluation,  // an evaluation within an epoch
  final,       // the evaluation at the end of the run
  other
};

struct MetricsRecord {
  // In the order of the line, by the names of spec/metric_name.h. The entries of an object have the
  // object's name before them: "grad_norms.lin1.weight". null is NaN, true is 1, false is 0.
  std::vector<std::pair<std::string, double>> numbers;
  std::vector<std::pair<std::string, std::string>> texts;

  std::optional<double> number(std::string_view key) const;
  std::string_view text(std::string_view key) const;  // empty: there is none
  RecordKind kind() const;
};

// Empty if the line is not a JSON object of numbers, texts and objects of these. Of a line that
// read_lines() cut off, what comes before the cut.
std::optional<MetricsRecord> parse_record(std::string_view line);

}  // namespace dpt
