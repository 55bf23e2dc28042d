// The event file that a run writes for TensorBoard: events.out.tfevents.TIME.HOST in its directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "train/scalars.h"

namespace dpt {

// Each process that trains writes a file of its own; TensorBoard shows those of a folder as one
// run. The file has the spec as a text and as settings, then the numbers of each record by the
// run's step. Where it cannot be written, a message says so and the run continues without it.
// Thread: one at a time.
class TensorBoardLog {
 public:
  // Where a run continues: step and epoch of its checkpoint.
  struct Start {
    int64_t step = 0;      // done
    int64_t of_epoch = 0;  // of them in the epoch that is not complete
  };
  // Begins a file. resumed: metrics.jsonl holds the records up to there. They are written, too, if
  // no earlier event file has them; otherwise later points of earlier files are dropped. Empty: a
  // new run.
  TensorBoardLog(std::string folder, const std::optional<Start>& resumed);

  int64_t add(std::string_view line);  // a record of metrics.jsonl; returns its step
  void flush();                        // writes what was added

 private:
  void continue_from(const Start& start, bool has_earlier);
  void add_spec(double time);

  std::string folder_, path_;
  Descriptor file_;
  ScalarReader reader_;
  std::string pending_;
};

// Removes the event files of an earlier run.
void remove_event_files(const std::string& folder);

}  // namespace dpt
