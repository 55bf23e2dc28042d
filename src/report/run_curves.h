// The numbers of a run over its steps, from metrics.jsonl: what charts show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/scalars.h"

namespace dpt {

struct CurvePoint {
  double step = 0, value = 0;  // value: maybe NaN
};

struct Curve {
  std::string tag;  // "validation.loss"; see train/scalars.h
  std::vector<CurvePoint> points;
  int64_t every = 1;  // points are those of every so many records, to bound memory

  // The last number; the best by lower_is_better(). Empty: there is none that is finite.
  std::optional<double> last() const;
  std::optional<CurvePoint> best() const;
};

// When a record was written.
struct RecordTime {
  int64_t step = 0;
  double time = 0;  // seconds since 1970 (UTC)
};

class RunCurves {
 public:
  void add(std::string_view line);  // the next line of metrics.jsonl

  const std::vector<Curve>& curves() const { return curves_; }  // by first appearance
  const Curve* find(std::string_view tag) const;                // null: there is none

  int64_t epoch() const { return epoch_; }  // of the last record
  int64_t step() const { return step_; }    // of the last record
  // From the first epoch; 0: none is complete.
  int64_t steps_of_epoch() const { return steps_of_epoch_; }
  // Records of the process that wrote last: the first one, and the last ones, oldest first.
  const std::vector<RecordTime>& times() const { return times_; }
  double first_time() const { return first_time_; }  // of all records; 0: unknown

  // Seconds in the training steps of epochs and in their evaluations.
  double trained_s() const { return trained_s_; }
  double evaluated_s() const { return evaluated_s_; }
  int64_t epochs() const { return epochs_; }  // complete ones
  // The mean share of training time that steps waited for data; empty: not recorded.
  std::optional<double> data_wait() const;

 private:
  Curve& curve(const std::string& tag);

  ScalarReader reader_;
  std::vector<Curve> curves_;
  std::string run_;
  std::vector<RecordTime> times_;
  int64_t epoch_ = 0, step_ = 0, steps_of_epoch_ = 0, epochs_ = 0, records_ = 0;
  double first_time_ = 0, trained_s_ = 0, evaluated_s_ = 0, waited_s_ = 0, wait_known_s_ = 0;
};

// Empty where there is no metrics.jsonl. Of a file of more than 32 MiB, a part of the steps'
// records is read, so that it takes no longer.
RunCurves read_curves(const std::string& run);

// Seconds until `steps` are done, from the pace of the last records, at the time `now` (UTC);
// empty: unknown.
std::optional<double> seconds_left(const RunCurves& curves, int64_t steps, double now);

}  // namespace dpt
