// All that a report says about a run, read from its directory.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "report/run_curves.h"
#include "train/metrics_record.h"
#include "train/run_summary.h"

namespace dpt {

struct WeightsHash {
  std::string file;    // "model.safetensors"
  std::string sha256;  // as sha256sum prints it; empty: the file is larger than was asked for
};

struct ReportedRun {
  std::string name;  // as the report shows it
  RunSummary summary;
  RunCurves curves;
  std::vector<WeightsHash> weights;  // of model.safetensors and best.safetensors
  // The texts of files; empty: there is none.
  std::string spec, plan, plan_svg, confusion;

  // "4000", "2.41"; empty: not in env.json.
  std::string environment_text(const std::string& key) const;
};

// most_hashed: files with more bytes are not hashed.
ReportedRun read_reported(const std::string& path, const std::string& name,
                          uint64_t most_hashed = std::numeric_limits<uint64_t>::max());

// "epoch 3" for a step of the run; "step 300" if no epoch is complete.
std::string epoch_text(const RunCurves& curves, double step);

}  // namespace dpt
