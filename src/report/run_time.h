// Where the time of a run went.
#pragma once

#include <string>
#include <vector>

#include "report/reported_run.h"

namespace dpt {

struct TimePart {
  std::string name;
  double seconds = 0;
};

struct RunTime {
  std::vector<TimePart> parts;       // without those of no time
  std::vector<std::string> reasons;  // sentences: what is slow, and what to do about it
  double total() const;
};

// Training, waiting for data, evaluation and, unless the run was resumed, the rest. Empty if no
// epoch is complete.
RunTime time_of(const ReportedRun& run);

std::string duration_text(double seconds);  // "0.0251 s", "12.3 s", "29:50"

}  // namespace dpt
