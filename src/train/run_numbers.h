// The numbers of a run by the names that users write: loss, test.accuracy, best.test.accuracy,
// seconds. Reads metrics.jsonl, so it works for runs that go on and for runs that have ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"

namespace dpt {

struct MetricsRecord;
struct Spec;

// The metrics that a run of this spec records: "loss" (of training), then those of evaluations, as
// "test.loss" and "validation.accuracy".
std::vector<std::string> metrics_of(const Spec& spec);

// How a run of this spec would evaluate its test set, for messages. Empty: it does.
std::string evaluation_advice(const Spec& spec);

// Whether a run of this spec records the metric, a full name: one of metrics_of(), or that of one
// of its labels, such as test.f1.cat.
bool records_metric(const Spec& spec, std::string_view metric);

// All names that RunNumbers::find() may know after a run of this spec: its metrics, the best values
// of those ("best.test.accuracy"), lr, epochs, steps, seconds and samples_per_second.
std::vector<std::string> number_names(const Spec& spec);

// The full name of what a user wrote: "accuracy" is the evaluations' own ("validation.accuracy" if
// the spec has a validation set, else "test.accuracy"), "train.loss" is "loss", and names of
// version 0.1.0 are current ones. Other names are returned as they are.
std::string full_metric_name(std::string_view name, const Spec& spec);

// A record of metrics.jsonl with results: of an epoch, or of an evaluation.
struct NumbersRecord {
  int64_t epoch = 0;
  double trained_s = 0;  // seconds of training until then, without evaluations
  std::map<std::string, double, std::less<>> values;  // by full name; NaN: not finite
};

class RunNumbers {
 public:
  // Adds a line of metrics.jsonl. Records of steps and broken lines are skipped.
  void add(std::string_view line);

  // The value of one of number_names(): a metric's last one, unless it begins with "best.". Empty:
  // the run has not recorded it.
  std::optional<double> find(std::string_view name) const;
  // The last value of a metric up to the end of an epoch.
  std::optional<double> at_epoch(std::string_view metric, int64_t epoch) const;
  // The first record whose metric is as good as `value`, or better; null: none is.
  const NumbersRecord* reached(std::string_view metric, double value) const;

  // The metrics that were recorded, and lr, by first appearance.
  const std::vector<std::string>& names() const { return names_; }
  int64_t epochs() const { return epochs_; }
  int64_t steps() const { return steps_; }               // of complete epochs
  bool stopped_early() const { return stopped_early_; }  // by `early_stop`
  double seconds() const { return seconds_; }
  const std::vector<NumbersRecord>& records() const { return records_; }

 private:
  void add_epoch(const MetricsRecord& record, int64_t epoch);

  std::vector<NumbersRecord> records_;
  std::vector<std::string> names_;
  bool stopped_early_ = false;
  int64_t epochs_ = 0, steps_ = 0;
  double seconds_ = 0, samples_ = 0, timed_s_ = 0;
};

// The numbers of a run directory; without a metrics.jsonl there are none. Throws Error{data} if it
// is unreadable.
RunNumbers read_numbers(const std::string& run);

// One JSON object, {"run": ..., "state": ..., "loss": ..., "test.accuracy": ..., "best.loss": ...}:
// every number that the run has recorded, and the SHA-256 of its weights.
std::string numbers_json(const RunNumbers& numbers, const Spec& spec, const std::string& run,
                         std::string_view state);

// SHA-256 of the run's model.safetensors, as sha256sum prints it. Throws Error{data} without one.
std::string weights_sha256(const std::string& run);

// Nine significant digits, as in metrics.jsonl; counts as they are.
Json exact_json(double x);
// The same as text; "nan", "inf".
std::string exact_number(double x);

}  // namespace dpt
