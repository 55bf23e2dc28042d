// Writes metrics.jsonl of a run directory: one JSON object per line, for a step or an epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/folder_lock.h"
#include "session/session.h"
#include "train/records.h"

namespace dpt {

// Every record has the `run` it is of and its `time` in seconds since 1970 (UTC). The file holds
// whole lines at any time. Where it cannot be written, as on a full disk, the run continues:
// records wait in memory for the next attempt, with each epoch or every 1024 steps. More than 1 MiB
// of them are lost, those of steps first; the number is printed. Thread: one at a time.
class MetricsWriter {
 public:
  // append: append to an existing file. Throws Error{failed}.
  MetricsWriter(const Session& session, std::string folder, std::string run, bool append);
  ~MetricsWriter();  // prints how many records could not be written
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
  using FileId = std::pair<dev_t, ino_t>;  // {0, 0}: there is none

  void open(bool append);
  void close_file();
  void format_steps();
  bool write_pending();
  void fail_once(const std::string& problem);
  void drop_records();
  void look_for_file();
  void reopen();

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
};

// Speed in the steps of an epoch, without evaluation.
double samples_per_second(const Session& session, const EpochRecord& record);

}  // namespace dpt
