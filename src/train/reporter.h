// What a run tells: lines for people on standard output and error, records in the run directory.
// Only rank 0's first worker has one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/executor.h"
#include "train/session.h"

namespace dpt {

struct StepRecord {
  int64_t step = 0, epoch = 0, of_epoch = 0;
  double loss = 0, lr = 0, norm = 0;
  double scale = 1;      // of the loss
  bool skipped = false;  // the gradients were not finite
  bool empty = false;    // the loss ignores all targets, and is nan
  const StepRows* rows = nullptr;
};

struct EpochRecord {
  int64_t epoch = 0, steps = 0;
  double loss = 0, lr = 0, seconds = 0;
  double scale = 1;     // of the loss, for the next step
  int64_t skipped = 0;  // steps of this epoch
  std::optional<Evaluation> evaluation{};
};

// Results go to standard output, everything else to standard error; a progress bar only on a
// terminal, at most ten times a second.
class Reporter {
 public:
  // folder: the run directory, which exists; empty: no files are written. goes_on: what is in
  // metrics.jsonl stays.
  Reporter(const Session& session, std::string folder, bool goes_on = false);
  ~Reporter();

  void begin();  // the header, and the tutorials' first lines; sets earlier weights aside
  void step(const StepRecord& record);
  void epoch(const EpochRecord& record);
  // The files that stay. checkpoint: the newest; empty: there is none.
  void end(int stopped_by, const std::string& checkpoint = "");

  int64_t metrics_bytes();  // that metrics.jsonl has, in whole lines, after all that was told

 private:
  void shapes(const StepRows& rows);
  void warn_of_empty(const StepRecord& record);
  void bar(const StepRecord& record);
  void clear_bar();
  void open_metrics(bool goes_on);
  void write_steps();
  void flush_metrics();
  void look_for_metrics();

  const Session& session_;
  std::string folder_;
  std::FILE* metrics_ = nullptr;
  int64_t metrics_bytes_ = 0;
  std::vector<StepRecord> steps_;  // recorded and not yet written: a step only puts numbers here
  bool terminal_;
  bool bar_shown_ = false;
  double bar_time_ = 0;
  int64_t empty_ = 0;  // steps of this epoch
};

// The weights in a run directory, and where those of an earlier run lie until this one has saved
// its own: so a run that fails neither destroys them nor passes them off as its result.
std::string model_file(const std::string& folder);
// The same number; a nan without its sign, which would be printed: "-nan".
double unsigned_nan(double number);
std::string previous_model_file(const std::string& folder);

// "[10, 5]": the shape of a batch of `n` samples.
std::string batch_shape(const TensorDesc& one_batch, int64_t n);

}  // namespace dpt
