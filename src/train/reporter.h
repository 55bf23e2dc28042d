// What a run tells: lines for people on standard output and error, records in the run directory.
// Only rank 0's first worker has one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "session/session.h"
#include "train/metrics_writer.h"
#include "train/progress_display.h"
#include "train/records.h"

namespace dpt {

// Results go to standard output, everything else to standard error (train/progress_display.h).
// Threads: one at a time.
class Reporter {
 public:
  struct Settings {
    bool goes_on = false;        // what is in metrics.jsonl stays
    std::string run_id{};        // of RunIdentity, for the records of metrics.jsonl
    double log_interval_s = 60;  // as ProgressDisplay has it
  };
  // folder: the run directory, which exists; empty: no files are written.
  Reporter(const Session& session, std::string folder) : Reporter(session, folder, Settings()) {}
  Reporter(const Session& session, std::string folder, const Settings& settings);

  // What the run continues: steps that are done, of the run and of its epoch (from 0).
  struct Start {
    int64_t step = 0, epoch = 0, of_epoch = 0;
  };
  // The header, and the tutorials' first lines; sets earlier weights aside.
  void begin(const Start& start);
  void begin_epoch(int64_t epoch, int64_t of_epoch);  // epoch: from 1
  void step(const StepRecord& record);
  void begin_evaluation();
  void evaluated(int64_t batches);  // so many of the evaluation are done
  void epoch(const EpochRecord& record);
  void settle() { display_.settle(); }  // after the last epoch: others may print from now on
  // The files that stay. checkpoint: the newest; empty: there is none.
  void end(int stopped_by, const std::string& checkpoint = "");

  int64_t metrics_bytes();  // that metrics.jsonl has, in whole lines, after all that was told

 private:
  void shapes(const StepRows& rows);
  void warn_of_empty(const StepRecord& record);

  const Session& session_;
  std::string folder_;
  std::optional<MetricsWriter> metrics_;
  ProgressPlan plan_;
  ProgressState now_;
  int64_t empty_ = 0;  // steps of this epoch
  ProgressDisplay display_;
};

// The weights in a run directory, and where those of an earlier run lie until this one has saved
// its own: so a run that fails neither destroys them nor passes them off as its result.
std::string model_file(const std::string& folder);
std::string previous_model_file(const std::string& folder);

// "[10, 5]": the shape of a batch of `n` samples.
std::string batch_shape(const TensorDesc& one_batch, int64_t n);

}  // namespace dpt
