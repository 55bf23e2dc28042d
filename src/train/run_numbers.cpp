#include "train/run_numbers.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/sha256.h"
#include "data/dataset.h"
#include "session/session.h"
#include "spec/metric_name.h"
#include "spec/spec.h"
#include "train/metrics_file.h"
#include "train/metrics_record.h"
#include "train/reporter.h"

namespace dpt {
namespace {

constexpr double kMostCount = 1e15;  // doubles represent smaller counts exactly

std::string_view evaluated_set(const Spec& spec) {
  return spec.data.validation.on() ? "validation" : "test";
}

// With a validation set, the test set is evaluated at the end, if there is one.
bool evaluates_test_set(const Spec& spec) {
  return spec.evaluate.on && (!spec.data.validation.on() || has_test_set(spec.data.dataset));
}

bool better(std::string_view metric, double a, double b) {
  return lower_is_better(metric) ? a < b : a > b;
}

}  // namespace

std::vector<std::string> metrics_of(const Spec& spec) {
  std::vector<std::string> metrics = {"loss"}, out = {"loss"};
  for (const Located<std::string>& m : spec.evaluate.metrics)
    if (m.value != "loss" && m.value != "confusion_matrix") metrics.push_back(m.value);
  const auto* const loss = static_cast<const LossType*>(spec.loss.what);
  if (spec.evaluate.metrics.empty() && loss && loss->classes) metrics.emplace_back("accuracy");
  const auto add = [&](std::string_view set) {
    for (const std::string& m : metrics) out.push_back(fmt::format("{}.{}", set, m));
  };
  if (spec.data.validation.on()) add("validation");
  if (evaluates_test_set(spec)) add("test");
  return out;
}

std::string evaluation_advice(const Spec& spec) {
  if (has_test_set(spec.data.dataset))
    return spec.evaluate.on ? "" : "set evaluate=true to evaluate on the test set";
  return spec.data.validation.on()
             ? "the data has no test set"
             : "the data has no test set: set data.validation=0.1 to hold out samples";
}

bool records_metric(const Spec& spec, std::string_view metric) {
  const std::vector<std::string> metrics = metrics_of(spec);
  if (std::ranges::find(metrics, metric) != metrics.end()) return true;
  const auto* const loss = static_cast<const LossType*>(spec.loss.what);
  return is_by_label(metric) && loss && has_labels(*loss) &&
         std::ranges::find(metrics, without_label(metric)) != metrics.end();
}

std::vector<std::string> number_names(const Spec& spec) {
  const std::vector<std::string> metrics = metrics_of(spec);
  std::vector<std::string> out = metrics;
  for (const std::string& m : metrics) out.push_back(fmt::format("{}{}", kBestPrefix, m));
  for (const char* name : {"lr", "epochs", "steps", "seconds", "samples_per_second"})
    out.emplace_back(name);
  return out;
}

std::string full_metric_name(std::string_view given, const Spec& spec) {
  const std::string name = current_name(given);
  if (name.starts_with(kBestPrefix))
    return fmt::format("{}{}", kBestPrefix, full_metric_name(without_best(name), spec));
  if (name == "train.loss") return "loss";
  const std::string evaluated = fmt::format("{}.{}", evaluated_set(spec), name);
  return name != "loss" && records_metric(spec, evaluated) ? evaluated : name;
}

void RunNumbers::add(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == line.npos) return;
  stopped_early_ = line.find(R"("stopped_early")") != line.npos;
  if (line.starts_with(R"({"step")")) return;  // most lines, and not worth parsing
  const auto record = parse_record(line);
  const RecordKind kind = record ? record->kind() : RecordKind::other;
  if (kind == RecordKind::other || kind == RecordKind::step) return;
  const double epoch = record->number("epoch").value_or(-1);
  if (!(epoch >= 0 && epoch < kMostCount)) return;
  NumbersRecord out{.epoch = static_cast<int64_t>(epoch)};
  for (const auto& [name, value] : record->numbers) {
    const bool of_training = kind == RecordKind::epoch && (name == "loss" || name == "lr");
    if (!of_training && set_of(name).empty()) continue;
    out.values[name] = value;
    if (std::ranges::find(names_, name) == names_.end()) names_.push_back(name);
  }
  if (kind == RecordKind::epoch) add_epoch(*record, out.epoch);
  out.trained_s = seconds_;
  records_.push_back(std::move(out));
}

// Counts what an epoch took.
void RunNumbers::add_epoch(const MetricsRecord& record, int64_t epoch) {
  const auto positive = [&](std::string_view key) {
    const double value = record.number(key).value_or(0);
    return std::isfinite(value) && value > 0 && value < kMostCount ? value : 0;
  };
  const double seconds = positive("seconds"), rate = positive("samples_per_second");
  epochs_ = std::max(epochs_, epoch);
  steps_ += static_cast<int64_t>(positive("steps"));
  seconds_ += seconds;
  if (rate == 0 || seconds == 0) return;
  samples_ += rate * seconds;
  timed_s_ += seconds;
}

std::optional<double> RunNumbers::find(std::string_view name) const {
  if (name == "epochs") return static_cast<double>(epochs_);
  if (name == "steps") return static_cast<double>(steps_);
  if (name == "seconds") return seconds_;
  if (name == "samples_per_second")
    return timed_s_ > 0 ? std::optional(samples_ / timed_s_) : std::nullopt;
  const bool best = name.starts_with(kBestPrefix);
  const std::string_view metric = best ? name.substr(kBestPrefix.size()) : name;
  std::optional<double> out;
  for (const NumbersRecord& r : records_)
    if (const auto found = r.values.find(metric); found != r.values.end())
      if (!best || !out || std::isnan(*out) || better(metric, found->second, *out))
        out = found->second;
  return out;
}

std::optional<double> RunNumbers::at_epoch(std::string_view metric, int64_t epoch) const {
  std::optional<double> out;
  for (const NumbersRecord& r : records_)
    if (const auto found = r.values.find(metric); found != r.values.end() && r.epoch <= epoch)
      out = found->second;
  return out;
}

const NumbersRecord* RunNumbers::reached(std::string_view metric, double value) const {
  for (const NumbersRecord& r : records_)
    if (const auto found = r.values.find(metric); found != r.values.end())
      if (found->second == value || better(metric, found->second, value)) return &r;
  return nullptr;
}

RunNumbers read_numbers(const std::string& run) {
  RunNumbers out;
  const std::string path = run + "/metrics.jsonl";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return out;
  std::ifstream in(path, std::ios::binary);
  if (in) read_lines(in, [&](std::string_view line, int64_t) { out.add(line); });
  if (!in.eof()) fail(Fault::data, "{} cannot be read", path);
  return out;
}

std::string numbers_json(const RunNumbers& numbers, const Spec& spec, const std::string& run,
                         std::string_view state) {
  Json out = {{"run", run}, {"name", spec.name}, {"state", state}};
  for (const std::string& name : number_names(spec))
    if (const auto value = numbers.find(name)) out.add(name, exact_json(*value));
  std::error_code error;
  if (std::filesystem::exists(model_file(run), error))
    out.add("weights.sha256", weights_sha256(run));
  return out.dump() + "\n";
}

std::string weights_sha256(const std::string& run) {
  std::ifstream in(model_file(run), std::ios::binary);
  Sha256 sum;
  std::vector<char> block(size_t{1} << 16);
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    sum.update(std::string_view(block.data(), static_cast<size_t>(in.gcount())));
  }
  if (!in.eof()) fail(Fault::data, "{} cannot be read", model_file(run));
  return sum.hex();
}

Json exact_json(double x) {
  constexpr int kDigits = 9;
  const bool count = std::abs(x) < kMostCount && x == std::trunc(x);
  return count ? Json::decimals(x, 0) : Json::rounded(x, kDigits);
}

std::string exact_number(double x) {
  return std::isfinite(x) ? exact_json(x).dump() : fmt::format("{}", x);
}

}  // namespace dpt
