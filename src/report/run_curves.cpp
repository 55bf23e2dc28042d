#include "report/run_curves.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "base/status_line.h"
#include "base/units.h"
#include "spec/metric_name.h"
#include "train/metrics_file.h"

namespace dpt {
namespace {

constexpr size_t kMostPoints = size_t{1} << 15;  // of a curve
constexpr size_t kMostTimes = 64;

bool is_share(std::string_view metric) {
  return metric == "accuracy" || metric == "data_wait" || top_k(metric) > 0;
}

}  // namespace

std::optional<double> Curve::last() const {
  for (size_t i = points.size(); i-- > 0;)
    if (std::isfinite(points[i].value)) return points[i].value;
  return {};
}

std::optional<CurvePoint> Curve::best() const {
  const bool lower = lower_is_better(metric_of(tag));
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

std::string_view metric_of(std::string_view tag) { return tag.substr(0, tag.find('/')); }

std::string title_of(std::string_view tag) {
  const size_t slash = tag.find('/');
  if (tag == "lr") return "learning rate";
  if (tag == "samples_per_second") return "samples per second";
  if (tag == "data_wait") return "share of time waiting for data";
  if (tag == "grad_norm") return "norm of the gradients";
  if (tag == "noise_scale") return "gradient noise scale";
  if (slash == tag.npos) return std::string(tag);
  const std::string_view metric = tag.substr(0, slash), of = tag.substr(slash + 1);
  if (metric == "grad_norms") return std::string(of);
  if (metric == "seconds") return of == "train" ? "seconds of an epoch" : "seconds of evaluation";
  if (of == "step") return fmt::format("{} of steps", metric);
  return fmt::format("{} {}", of == "train" ? "training" : of, metric);
}

std::string value_text(std::string_view tag, double value) {
  constexpr double kLarge = 1e5;
  const std::string_view metric = metric_of(tag);
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (is_share(metric)) return fmt::format("{:.2f} %", 100 * value);
  if (metric == "samples_per_second") return samples_per_second(value);
  if (metric == "seconds") return fmt::format("{:.2f} s", value);
  if (metric == "lr") return fmt::format("{:.4g}", value);
  if (value != 0 && (std::abs(value) >= kLarge || std::abs(value) < 1e-3))
    return fmt::format("{:.4g}", value);
  return fmt::format("{:.4f}", value);
}

}  // namespace dpt
