// Writes metrics.jsonl of a run directory: one JSON object per line, for a step or an epoch.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "session/session.h"
#include "train/records.h"

namespace dpt {

// Every record has the `run` id and its `time` in seconds since 1970 (UTC). A full disk does not
// end the run: it is reported once, and the run continues without the file. Thread: one at a time.
class MetricsWriter {
 public:
  // goes_on: append to an existing file. Throws Error{failed}.
  MetricsWriter(const Session& session, std::string folder, std::string run, bool goes_on);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  void step(const StepRecord& record);  // a step that `log.every` selects
  void epoch(const EpochRecord& record);
  int64_t flush();  // writes all records; returns the file's size in bytes

 private:
  struct Step {
    StepRecord record;
    double time = 0;
  };
  void open(bool goes_on);
  void write_steps();
  void look_for_file();

  const Session& session_;
  std::string folder_, run_;
  std::FILE* file_ = nullptr;  // null: the file cannot be written
  int64_t bytes_ = 0;
  std::vector<Step> steps_;  // recorded but not yet written, so that a step only stores numbers
};

// Speed in the steps of an epoch, without evaluation.
double samples_per_second(const Session& session, const EpochRecord& record);

}  // namespace dpt
