#include "train/scalars.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace dpt {
namespace {

// The position, and what is no measurement.
constexpr std::array<std::string_view, 7> kNoScalars = {"step",  "epoch",      "steps",  "time",
                                                        "final", "evaluation", "skipped"};
// What records of steps have, too, and then more often.
constexpr std::array<std::string_view, 5> kOfSteps = {"lr", "loss_scale", "norm", "noise_scale",
                                                      "data_wait"};

int64_t integer(double x) {
  constexpr double kMost = 1e15;  // doubles represent smaller integers exactly
  return x >= 0 && x < kMost ? static_cast<int64_t>(x) : 0;
}

}  // namespace

std::optional<ScalarsOfRecord> ScalarReader::read(const MetricsRecord& record) {
  const RecordKind kind = record.kind();
  if (kind == RecordKind::other) return {};
  const bool of_step = kind == RecordKind::step;
  has_steps_ = has_steps_ || of_step;
  ScalarsOfRecord out;
  if (kind == RecordKind::epoch) {
    steps_ += integer(record.number("steps").value_or(0));
    out.step = steps_;
  } else {
    out.step = integer(record.number("step").value_or(static_cast<double>(steps_)));
  }
  for (const auto& [key, value] : record.numbers) {
    if (std::ranges::find(kNoScalars, key) != kNoScalars.end()) continue;
    if (!of_step && has_steps_ && std::ranges::find(kOfSteps, key) != kOfSteps.end()) continue;
    out.values.push_back({of_step && key == "loss" ? "step.loss" : key, value});
  }
  return out;
}

}  // namespace dpt
