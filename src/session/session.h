// Session: everything that is decided before the first batch: data, topology, programs for every
// size of a shard group, and the plan. Nothing is computed yet. `dptrain plan` prints it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/interface/load.h"
#include "data/batch_loader.h"
#include "data/dataset.h"
#include "graph/passes/precision.h"
#include "graph/program/plan.h"
#include "graph/program/program.h"
#include "layers/loss.h"
#include "optim/gradient_scaler.h"
#include "optim/optimizer.h"
#include "parallel/mode.h"
#include "session/batch_partitioner.h"
#include "session/evaluation_metrics.h"
#include "session/parameter_groups.h"
#include "spec/spec.h"

namespace dpt {

// All names that a spec may use.
Registries registries();

// The state's name in checkpoints: "lin1.weight.ema".
inline constexpr std::string_view kAverageState = "ema";

struct Session {
  Spec spec;
  // "spec.yaml:7:18" if the spec gives initial weights; else empty
  std::string initial_weights_location;
  const ModeType* mode = nullptr;
  const LossType* loss = nullptr;
  const OptimizerType* optimizer = nullptr;
  Topology topology;
  Exchange exchange;
  std::string device = "cpu";
  std::string note;  // why `device: auto` is a CPU; empty: nothing to report
  bool on_gpu() const { return device == "cuda"; }
  cuda::GpuSurvey gpus;            // set if CUDA was asked
  std::vector<int> gpu_of_worker;  // numbers among the GPUs that CUDA shows
  bool sums_on_host() const {
    return on_gpu() && topology.replicas() > 1 && exchange.backend == Exchange::Backend::host;
  }
  // Whether the shared buffers have no optimizer states, because CPU workers keep them for
  // themselves. GPUs copy theirs to the buffers, sharded or not (StepExecutor::gather).
  bool own_states() const { return exchange.shard_states && !on_gpu(); }
  // The stages of a replica are in different processes, one device each.
  bool stages_are_processes() const {
    return topology.devices_per_rank < topology.devices_per_replica;
  }
  // Whether steps on GPUs are captured as CUDA graphs. This is impossible if the host takes part
  // within a step: to sum gradients, or to tell another GPU's thread that an event was recorded.
  bool captures_steps() const {
    const bool by_hosts = (topology.replicas() > 1 || stages_are_processes()) &&
                          exchange.backend == Exchange::Backend::host;
    return on_gpu() && spec.graphs && !by_hosts &&
           (topology.devices_per_replica == 1 || stages_are_processes());
  }
  bool tf32 = false;  // matrix products on GPUs round f32 factors to TF32

  PrecisionPolicy precision;
  ScalerSettings scaler;

  Dataset train;
  // The set of the evaluations during training: the validation set if there is one, else the test
  // set. Empty: the spec asks for no evaluation.
  std::optional<Dataset> test;
  bool validates = false;  // `test` is the validation set
  // The sample numbers that are trained on and evaluated, in order. Empty: all of the data set.
  std::vector<uint32_t> train_rows, test_rows;
  // The test set of a run that validates, for an evaluation after its last step; empty: there is
  // none, or the spec does not ask for it.
  std::optional<Dataset> final_test;
  int64_t train_samples() const {
    return train_rows.empty() ? train.size() : static_cast<int64_t>(train_rows.size());
  }
  int64_t test_samples() const {  // REQUIRES: test
    return test_rows.empty() ? test->size() : static_cast<int64_t>(test_rows.size());
  }
  std::vector<uint32_t> test_order() const;  // REQUIRES: test
  std::string_view evaluated_set() const { return validates ? "validation" : "test"; }
  EvaluationMetrics metrics;
  std::unique_ptr<BatchLoader> loader, test_loader;

  std::optional<BatchPartitioner> batches, test_batches;
  int64_t global_batch = 1;  // samples per optimizer step
  Divisor divisor = Divisor::samples;
  bool takes_empty_steps = false;  // StepResult::empty is possible, see layers/model.h
  int64_t terms_per_sample = 1;    // see layers/model.h

  Graph graph;                     // for a shard of the usual size: for names, counts and plans
  std::vector<Rows> shard_groups;  // each computed as one batch: program.h, note [shard groups]
  FlatLayout layout;
  ParameterGroups parameter_groups;
  std::optional<Pipeline> pipeline;  // if the mode splits layers into stages itself
  std::vector<int> placement;        // device of each unit in a pipeline, see layers/model.h
  std::vector<int> slots;            // for each stage: chunks that it may have in flight
  int slot_count() const;            // number of chunks after which all slots repeat
  // Whether no non-empty micro-batch follows `micro` among the pipeline->chunks micro-batches that
  // a pipeline is given at once. Without a pipeline, each micro-batch is given alone.
  bool last_chunk(const StepRows& rows, size_t micro) const;
  // The latest earlier batch in the same slot of the stage; -1: none.
  int64_t same_slot_before(int stage, int64_t batch) const;
  // In an evaluation: how many parts the stage's device has finished once it is done with this
  // batch.
  int64_t test_parts_until(int stage, int64_t batch) const;
  Plan plan;
  int test_sync_points =
      0;  // sync points in the forward part of an evaluation (program.h, Note [sync points])
  std::map<ShardGroupRows, Program> programs, test_programs;
  std::map<ShardGroupRows, Program> last_programs;  // for a last chunk that keeps its activations

  int64_t epochs = 0;          // including one that `steps` ends early
  int64_t steps = 0;           // of the whole run
  int64_t parameters() const;  // trainable elements
  // Names of the state buffers: the optimizer's states, then, with `ema`, that of the averages.
  std::vector<std::string> state_names() const;
  int states() const;  // number of state buffers
  // The state buffer of the averaged weights. REQUIRES: spec.ema.
  int average_state() const { return states() - 1; }
  // Whether gradients are measured in the step with this number, from 0.
  bool measures() const { return spec.log.grad_norms || spec.log.noise_scale; }
  bool measures(uint64_t step) const {
    return measures() && (step + 1) % static_cast<uint64_t>(spec.log.every) == 0;
  }
  bool cycles_momentum() const;  // the schedule sets the optimizer's momentum
  // Targets of the evaluated set that the loss does not ignore: the denominator of the accuracy.
  // REQUIRES: test.
  double counted_test_targets() const {
    return static_cast<double>(test_samples() * test->targets.sample().elements() - test->ignored);
  }
  bool ignores() const { return train.ignored > 0 || (test && test->ignored > 0); }
};

// Circumstances that change a session.
struct SessionQuery {
  // Number of ranks that an external launcher started; empty: dptrain starts its own.
  std::optional<int> world;
  bool runs = true;                     // false: only described, so GPUs need not exist
  std::optional<cuda::GpuSurvey> gpus;  // used instead of asking CUDA
  // Synthetic data sets are sized but not generated: the session can be described, but not run.
  bool sizes_only = false;
  // Evaluates on the final_test of this session instead of loading data. Null: data is loaded.
  const Session* data_of = nullptr;
};

// Makes a session. Returns null after errors in the spec (shapes that do not fit, contradicting
// settings), which are reported to `d`. Throws Error{data} if data cannot be read, Error{device} if
// a device is not available.
std::unique_ptr<Session> make_session(Spec spec, const SessionQuery& query, Diagnostics& d);

}  // namespace dpt
