// The share of the training time that steps wait for data.
#pragma once

#include <algorithm>

namespace dpt {

// Arguments: StepExecutor::data_seconds() and the time in seconds, of one steady clock.
class DataWait {
 public:
  void begin_epoch(double waited, double now) { epoch_ = record_ = {waited, now}; }
  double of_epoch(double waited, double now) const { return share(epoch_, waited, now); }
  // Leaves out this time, in which no steps were made.
  void leave_out(double waited, double seconds) {
    for (Mark* m : {&epoch_, &record_}) m->waited += waited, m->now += seconds;
  }
  // Since the last call in the epoch, or since the epoch began.
  double since_record(double waited, double now) {
    const double out = share(record_, waited, now);
    record_ = {waited, now};
    return out;
  }

 private:
  struct Mark {
    double waited = 0, now = 0;
  };
  static double share(const Mark& since, double waited, double now) {
    const double seconds = now - since.now;
    // Sampled steps stand for others, so the sum may exceed the time of a few steps.
    return seconds > 0 ? std::clamp((waited - since.waited) / seconds, 0.0, 1.0) : 0;
  }
  Mark epoch_, record_;
};

}  // namespace dpt
