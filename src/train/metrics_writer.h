// Writes metrics.jsonl of a run directory: one JSON object a line, of a step or of an epoch.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "session/session.h"
#include "train/records.h"

namespace dpt {

// Every record has the `run` it is of and its `time` in seconds since 1970 (UTC). A disk that fills
// does not end the run: it is reported once, and the run continues without the file.
// Thread: one at a time.
class MetricsWriter {
 public:
  // goes_on: what is in the file stays. Throws Error{failed}.
  MetricsWriter(const Session& session, std::string folder, std::string run, bool goes_on);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  void step(const StepRecord& record);  // of those that `log.every` asks for
  void epoch(const EpochRecord& record);
  int64_t flush();  // the file's bytes, in whole lines, after all that was recorded

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
  std::FILE* file_ = nullptr;  // null: it cannot be written
  int64_t bytes_ = 0;
  std::vector<Step> steps_;  // recorded and not yet written: a step only puts numbers here
};

// Of the steps of an epoch.
double samples_per_second(const Session& session, const EpochRecord& record);

}  // namespace dpt
