// Reports a run: lines for people on standard output and standard error, and records in the run
// directory. Only the first worker of rank 0 has a Reporter.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "checkpoint/train_state.h"
#include "session/session.h"
#include "train/metrics_writer.h"
#include "train/progress_display.h"
#include "train/records.h"

namespace dpt {

// Results go to standard output, everything else to standard error (train/progress_display.h).
// Thread: one at a time.
class Reporter {
 public:
  struct Settings {
    std::optional<TensorBoardLog::Start> resumed{};  // metrics.jsonl is continued there
    std::string run_id{};        // RunIdentity::id, written into the records of metrics.jsonl
    double log_interval_s = 60;  // see ProgressDisplay
    int cpus = 0;                // see RunRequest; 0: those of this process
    Disk* disk = nullptr;        // to sync records; null: the machine's
  };
  // folder: the run directory, which must exist; empty: no files are written.
  Reporter(const Session& session, std::string folder)
      : Reporter(session, std::move(folder), Settings()) {}
  Reporter(const Session& session, std::string folder, const Settings& settings);

  // Where the run begins: steps and epochs done before (0 for a new run), and steps done of its
  // epoch.
  struct Start {
    int64_t step = 0, epoch = 0, of_epoch = 0;
  };
  // Prints the header and the tutorials' first lines; moves an earlier run's weights aside.
  void begin(const Start& start);
  void begin_epoch(int64_t epoch, int64_t of_epoch);  // epoch: from 1
  void step(const StepRecord& record);
  void begin_evaluation();
  void evaluated(int64_t batches);  // number of evaluated batches so far
  // An evaluation between two steps of an epoch.
  void evaluation(const EvaluationRecord& record);
  void epoch(const EpochRecord& record);
  // The evaluation of the test set at the end of a run; call it after settle().
  void final_test(const FinalRecord& record);
  void warn(const std::string& lines) { display_.print("", lines); }
  void settle() { display_.settle(); }  // call after the last epoch; afterwards others may print
  struct End {
    int stopped_by = 0;
    std::string checkpoint{};        // the newest one; empty: none
    BestValue best{}, early_stop{};  // see Outcome
    bool stopped_early = false;
  };
  // Prints how the run ended and which files it leaves.
  void end(const End& end);

  // Writes all records, so that they survive a crash of the machine; returns the size of
  // metrics.jsonl in bytes.
  int64_t sync_metrics();

 private:
  void shapes(const StepRows& rows);
  void warn_of_empty(const StepRecord& record);
  std::optional<double> end_evaluation();
  std::string warning_of(const Evaluation& evaluation, const std::string& where) const;
  void write_confusion_matrix(const Evaluation& evaluation) const;
  void print_best(const BestValue& best) const;

  const Session& session_;
  std::string folder_;
  int cpus_;
  Disk machines_own_;
  Disk& disk_;
  std::optional<MetricsWriter> metrics_;
  ProgressPlan plan_;
  ProgressState now_;
  int64_t empty_ = 0;  // steps of this epoch whose loss ignores all targets
  ProgressDisplay display_;
};

// The weights in a run directory, and where an earlier run's weights are kept until this run has
// saved its own. A run that fails thus neither destroys them nor presents them as its result.
std::string model_file(const std::string& folder);
std::string previous_model_file(const std::string& folder);
// While a run trains: a line about its last step, for `dptrain watch`.
std::string progress_file(const std::string& folder);

// The shape of a batch of `n` samples: "[10, 5]".
std::string batch_shape(const TensorDesc& one_batch, int64_t n);

}  // namespace dpt
