// results.csv of a run directory: a line for each epoch record of metrics.jsonl, a column for each
// of its numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/disk.h"

namespace dpt {

// Holds whole lines at any time. A number that is not finite is an empty field, as is one that an
// epoch lacks, such as the loss of an evaluation. Where the file cannot be written, it is made
// again from metrics.jsonl with a later epoch. Thread: one at a time.
class ResultsFile {
 public:
  explicit ResultsFile(std::string folder);

  // Makes the file from metrics.jsonl, or removes it if there are no epochs.
  void restore();
  // Adds a record, if it is of an epoch. REQUIRES: metrics.jsonl holds it, too.
  void add(std::string_view line);
  void sync(Disk& disk) const;  // afterwards the lines survive a crash of the machine

 private:
  bool append(std::string_view text) const;

  std::string folder_, path_;
  std::vector<std::string> columns_;
  bool failing_ = false;  // a message said so
};

}  // namespace dpt
