// Writes metrics.jsonl of a run directory: one JSON object per line, for a step, an epoch
// or an evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/disk.h"
#include "base/folder_lock.h"
#include "session/session.h"
#include "train/records.h"
#include "train/results_file.h"
#include "train/tensorboard_log.h"

namespace dpt {

// Every record has the `run` it is of and its `time` in seconds since 1970 (UTC). The file holds
// whole lines at any time. Where it cannot be written, as on a full disk, the run continues:
// records wait in memory for the next attempt, with each epoch, every second or every 1024 steps.
// More than 1 MiB of them are lost, those of steps first; the number is printed. What is made from
// the records, results.csv and TensorBoard's events, is written with them. Thread: one at a time.
class MetricsWriter {
 public:
  // resumed: append to an existing file, which holds the records up to there; empty: a new run,
  // which removes what an earlier one reported in the folder. Throws Error{failed}.
  MetricsWriter(const Session& session, std::string folder, std::string run,
                const std::optional<TensorBoardLog::Start>& resumed);
  ~MetricsWriter();  // prints how many records could not be written
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  void step(const StepRecord& record);  // a step that `log.every` selects
  // evaluation_s: duration of the epoch's evaluation; empty: there was none.
  void epoch(const EpochRecord& record, std::optional<double> evaluation_s = {});
  void evaluation(const EvaluationRecord& record);
  void final_test(const FinalRecord& record);
  void stopped_early();  // the last record of a run that `early_stop` ended
  int64_t flush();       // writes all records; returns the file's size in bytes
  // flush(), after which the records survive a crash of the machine.
  int64_t sync(Disk& disk);

 private:
  struct Step {
    StepRecord record;
    double time = 0;
  };
  using FileId = std::pair<dev_t, ino_t>;  // {0, 0}: there is none

  void open(bool append);
  void close_file();
  void format_steps();
  void add(Json record);
  Json norms_of(const std::vector<double>& norms) const;
  bool write_pending();
  void fail_once(const std::string& problem);
  void drop_records();
  void look_for_file();
  void reopen();
  void pass_on(std::string_view lines);

  const Session& session_;
  std::string folder_, run_;
  int fd_ = -1;          // -1: the file was removed, and there is no new one yet
  int64_t bytes_ = 0;    // of whole lines in the file
  std::string pending_;  // whole lines that are not in the file yet
  int64_t lost_ = 0;     // records since writing failed
  bool failing_ = false;
  std::string problem_;             // why, where it fails
  FileId lock_id_;                  // of the run directory's lock
  std::optional<FolderLock> lock_;  // of a directory that was made again
  std::vector<Step> steps_;         // recorded and not yet formatted: a step only puts numbers here
  double flushed_s_ = 0;            // UTC
  ResultsFile results_;
  std::optional<TensorBoardLog> events_;
  size_t passed_ = 0;  // bytes of pending_ that are in these two
};

// Speed in the steps of an epoch, without evaluation.
double samples_per_second(const SessionData& data, const SessionBatches& batches,
                          const EpochRecord& record);

}  // namespace dpt
