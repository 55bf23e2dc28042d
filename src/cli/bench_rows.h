// Makes the rows that `dptrain bench` measures from its lists of modes, devices, batch sizes and
// precisions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/spec_argument.h"
#include "report/row.h"

namespace dpt::commands {

// Lists from the command line, separated by commas; empty: the default.
struct BenchLists {
  std::string modes;
  // Modes to compare with `single` by number of devices. Excludes `modes`.
  std::string compare;
  std::string devices, batch_sizes, precisions;
};

// Loads the spec with further overrides after those of the command line. Throws BadSpec.
LoadedSpec load_with(const SpecArgument& argument, const std::vector<std::string>& more);

// Overrides that turn evaluations off, and what needs them: for measurements.
std::vector<std::string> without_evaluations(const Spec& spec);

class RowMaker {
 public:
  // Both arguments must outlive it. Throws BadSpec.
  RowMaker(const SpecArgument& argument, const BenchLists& lists);

  // Every combination of the lists. Throws BadSpec for invalid lists and values, and Error{spec} if
  // a mode whose number of devices is not given does not fit the spec. Rows whose number of devices
  // does not fit are refused later, when they are measured.
  std::vector<BenchRow> rows();

  // Whether modes are compared with `single` at several numbers of devices (--compare).
  bool compares() const { return !lists_.compare.empty(); }

  const Spec& spec() const { return base_; }
  // The same for all rows: `cores` of the spec, or 1.
  int64_t cores_per_device() const { return base_.devices.cores.value_or(1); }

 private:
  std::vector<std::string> modes() const;
  std::vector<std::string> devices() const;
  std::vector<std::string> counts(const std::string& mode,
                                  const std::vector<std::string>& devices) const;
  std::vector<std::string> stage_counts(const std::vector<std::string>& devices) const;
  int64_t device_count(const std::string& text) const;
  std::string own_devices() const;
  std::string own_batch() const;
  BenchRow row(const std::string& mode, const std::string& devices, const std::string& batch,
               const std::string& precision) const;
  std::vector<std::string> pipeline_overrides(const std::string& devices) const;

  // The pipeline as the spec has it, or the mode's own.
  struct Pipeline {
    int64_t replicas = 1;
    bool cut = false;  // the spec says where stages begin
  };
  const Pipeline& own_pipeline() const;

  const SpecArgument& argument_;
  const BenchLists& lists_;
  Spec base_;
  mutable std::optional<Pipeline> own_pipeline_;  // found once, since that reads the spec again
};

}  // namespace dpt::commands
