#include "train/run_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/sha256.h"
#include "formats/json_text.h"
#include "session/session.h"
#include "spec/metric_name.h"
#include "spec/spec.h"
#include "train/metrics_file.h"
#include "train/reporter.h"

namespace dpt {
namespace {

constexpr std::string_view kBest = "best.";
constexpr double kMostCount = 1e15;  // doubles represent smaller counts exactly

// The end of a JSON string that begins after the quote before `at`.
size_t end_of_text(std::string_view record, size_t at) {
  while (at < record.size() && record[at] != '"') at += record[at] == '\\' ? 2 : 1;
  return std::min(at, record.size());
}

// Calls `found` with each number on the first level of a JSON object; null is NaN.
template <class F>
void each_number(std::string_view record, F&& found) {
  int depth = 0;
  std::string_view key;  // whose value follows
  for (size_t i = 0; i < record.size(); ++i) {
    const char c = record[i];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c == '"') {
      const size_t end = end_of_text(record, i + 1);
      key = record.substr(i + 1, end - i - 1);
      i = end;
    }
    if (c != ':' || depth != 1) continue;
    const size_t at = record.find_first_not_of(" \t", i + 1);
    if (at == record.npos) return;
    double value = std::numeric_limits<double>::quiet_NaN();
    const char* const end = record.data() + record.size();
    if (record.substr(at).starts_with("null") ||
        std::from_chars(record.data() + at, end, value).ec == std::errc())
      found(key, value);
  }
}

// "test.accuracy" of "test_accuracy"; empty: no result of an evaluation.
std::string metric_of_key(std::string_view key) {
  for (const std::string_view set : {"test", "validation"})
    if (key.starts_with(set) && key.size() > set.size() + 1 && key[set.size()] == '_')
      return fmt::format("{}.{}", set, key.substr(set.size() + 1));
  return "";
}

std::string_view evaluated_set(const Spec& spec) {
  return spec.data.validation.on() ? "validation" : "test";
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
  if (spec.evaluate.on) add("test");
  return out;
}

std::vector<std::string> number_names(const Spec& spec) {
  const std::vector<std::string> metrics = metrics_of(spec);
  std::vector<std::string> out = metrics;
  for (const std::string& m : metrics) out.push_back(fmt::format("{}{}", kBest, m));
  for (const char* name : {"lr", "epochs", "steps", "seconds", "samples_per_second"})
    out.emplace_back(name);
  return out;
}

std::string full_metric_name(std::string_view name, const Spec& spec) {
  if (name.starts_with(kBest))
    return fmt::format("{}{}", kBest, full_metric_name(name.substr(kBest.size()), spec));
  if (name == "train.loss") return "loss";
  const std::string evaluated = fmt::format("{}.{}", evaluated_set(spec), name);
  const std::vector<std::string> metrics = metrics_of(spec);
  const bool known = name != "loss" && std::ranges::find(metrics, evaluated) != metrics.end();
  return known ? evaluated : std::string(name);
}

void RunNumbers::add(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r"), end = line.find_last_not_of(" \t\r");
  if (begin == line.npos || line[begin] != '{' || line[end] != '}') return;
  const bool evaluation = metric(line, "evaluation") || line.find("\"final\"") != line.npos;
  const auto epoch = metric(line, "epoch");
  if (!epoch || (metric(line, "step") && !evaluation)) return;
  NumbersRecord record;
  record.epoch = *epoch >= 0 && *epoch < kMostCount ? static_cast<int64_t>(*epoch) : 0;
  each_number(line, [&](std::string_view key, double value) {
    if (const std::string m = metric_of_key(key); !m.empty()) record.values[m] = value;
    if (!evaluation && (key == "loss" || key == "lr")) record.values[std::string(key)] = value;
  });
  if (!evaluation) add_epoch(line, record.epoch);
  record.trained_s = seconds_;
  records_.push_back(std::move(record));
}

// Counts what an epoch took.
void RunNumbers::add_epoch(std::string_view line, int64_t epoch) {
  const auto positive = [&](std::string_view key) {
    const double value = metric(line, key).value_or(0);
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
  const bool best = name.starts_with(kBest);
  const std::string_view metric = best ? name.substr(kBest.size()) : name;
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
  std::vector<std::string> entries = {fmt::format("\"run\": {}", json_text(run)),
                                      fmt::format("\"name\": {}", json_text(spec.name)),
                                      fmt::format("\"state\": {}", json_text(state))};
  for (const std::string& name : number_names(spec))
    if (const auto value = numbers.find(name))
      entries.push_back(fmt::format("{}: {}", json_text(name),
                                    std::isfinite(*value) ? exact_number(*value) : "null"));
  std::error_code error;
  if (std::filesystem::exists(model_file(run), error))
    entries.push_back(fmt::format("\"weights.sha256\": \"{}\"", weights_sha256(run)));
  return fmt::format("{{{}}}\n", fmt::join(entries, ", "));
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

std::string exact_number(double x) {
  // Counts stand without an exponent.
  if (std::abs(x) < kMostCount && x == std::trunc(x)) return fmt::format("{:.0f}", x);
  return fmt::format("{:.9g}", x);
}

}  // namespace dpt
