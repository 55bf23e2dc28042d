#include "report/run_curves.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "base/units.h"
#include "report/metric_text.h"
#include "spec/metric_name.h"
#include "train/metrics_file.h"

namespace dpt {
namespace {

constexpr size_t kMostPoints = size_t{1} << 15;  // of a curve
constexpr size_t kMostTimes = 64;

}  // namespace

std::optional<double> Curve::last() const {
  for (size_t i = points.size(); i-- > 0;)
    if (std::isfinite(points[i].value)) return points[i].value;
  return {};
}

std::optional<CurvePoint> Curve::best() const {
  const bool lower = lower_is_better(group_of(tag));
  std::optional<CurvePoint> out;
  for (const CurvePoint& p : points)
    if (std::isfinite(p.value) && (!out || (lower ? p.value < out->value : p.value > out->value)))
      out = p;
  return out;
}

Curve& RunCurves::curve(const std::string& tag) {
  const auto found = std::ranges::find(curves_, tag, &Curve::tag);
  if (found != curves_.end()) return *found;
  return curves_.emplace_back(Curve{.tag = tag, .points = {}});
}

const Curve* RunCurves::find(std::string_view tag) const {
  const auto found = std::ranges::find(curves_, tag, &Curve::tag);
  return found == curves_.end() ? nullptr : &*found;
}

void RunCurves::add(std::string_view line) {
  const auto record = parse_record(line);
  if (!record) return;
  const auto scalars = reader_.read(*record);
  if (!scalars) return;
  ++records_;
  step_ = std::max(step_, scalars->step);  // a final evaluation may be of earlier weights
  epoch_ = std::max(epoch_, static_cast<int64_t>(record->number("epoch").value_or(0)));
  if (const double time = record->number("time").value_or(0); time > 0) {
    if (first_time_ == 0) first_time_ = time;
    if (record->text("run") != run_) times_.clear();
    run_ = record->text("run");
    if (times_.size() == kMostTimes) times_.erase(times_.begin() + 1);
    times_.push_back({step_, time});
  }
  evaluated_s_ += record->number("evaluation_seconds").value_or(0);
  if (record->kind() == RecordKind::epoch) {
    ++epochs_;
    if (steps_of_epoch_ == 0) steps_of_epoch_ = step_;
    const double seconds = record->number("seconds").value_or(0);
    trained_s_ += seconds;
    if (const auto wait = record->number("data_wait"); wait && std::isfinite(*wait)) {
      waited_s_ += *wait * seconds;
      wait_known_s_ += seconds;
    }
  }
  for (const auto& [tag, value] : scalars->values) {
    Curve& c = curve(tag);
    if (c.every > 1 && records_ % c.every != 0) continue;
    c.points.push_back({static_cast<double>(scalars->step), value});
    if (c.points.size() < kMostPoints) continue;
    for (size_t i = 0; 2 * i < c.points.size(); ++i) c.points[i] = c.points[2 * i];
    c.points.resize(c.points.size() / 2);
    c.every *= 2;
  }
}

std::optional<double> RunCurves::data_wait() const {
  return wait_known_s_ > 0 ? std::optional(waited_s_ / wait_known_s_) : std::nullopt;
}

RunCurves read_curves(const std::string& run) {
  constexpr uintmax_t kWholeBytes = 32 * kMiB;
  RunCurves out;
  const std::string path = run + "/metrics.jsonl";
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  const auto every = static_cast<int64_t>(error ? 1 : 1 + bytes / kWholeBytes);
  std::ifstream in(path, std::ios::binary);
  read_lines(in, [&](std::string_view line, int64_t number) {
    if (number % every == 0 || !line.starts_with(R"({"step")")) out.add(line);
  });
  return out;
}

std::optional<double> seconds_left(const RunCurves& curves, int64_t steps, double now) {
  if (curves.times().size() < 2 || steps <= 0) return {};
  const RecordTime &first = curves.times().front(), &last = curves.times().back();
  // The pace since the second of the kept records: the first may lie long before it.
  const RecordTime& from = curves.times().size() > 2 ? curves.times()[1] : first;
  const auto done = static_cast<double>(last.step - from.step);
  if (done <= 0 || last.time <= from.time) return {};
  const double whole = static_cast<double>(steps - last.step) * (last.time - from.time) / done;
  return std::max(0.0, whole - std::max(0.0, now - last.time));
}

}  // namespace dpt
