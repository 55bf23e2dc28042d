// Tells the user during a run what holds it up: data, cores that others use, or barriers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "session/session.h"

namespace dpt {

// Of training steps, without evaluations; seconds of the first worker.
struct TrainingTimes {
  double seconds = 0;
  double data = 0;      // waiting for samples and making batches of them
  double barriers = 0;  // waiting for other workers
  int64_t steps = 0;
  TrainingTimes operator-(const TrainingTimes& o) const {
    return {.seconds = seconds - o.seconds,
            .data = data - o.data,
            .barriers = barriers - o.barriers,
            .steps = steps - o.steps};
  }
  TrainingTimes operator+(const TrainingTimes& o) const { return *this - (TrainingTimes() - o); }
};

class Bottlenecks {
 public:
  // cores: that this process may use. delay: RunDelay::share() of the first worker; called rarely.
  // REQUIRES: `session` outlives it.
  Bottlenecks(const Session& session, int cores, std::function<double()> delay)
      : session_(session), cores_(cores), delay_(std::move(delay)) {}

  // Adds the steps of an epoch. Returns warnings, one per line, empty if there is nothing new: each
  // cause is reported once. Says nothing about less than 2 s of training.
  std::string after_epoch(const TrainingTimes& epoch);

 private:
  std::string cause(const TrainingTimes& t);

  const Session& session_;
  int cores_;
  std::function<double()> delay_;
  TrainingTimes since_;  // the last look
  bool told_data_ = false, told_cores_ = false, told_barriers_ = false;
};

}  // namespace dpt
