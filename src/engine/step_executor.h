// The interface between the training loop and a worker, on CPUs and GPUs alike: training steps,
// evaluation, and the non-finite check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/prefetch_stream.h"
#include "graph/optimizer_step.h"
#include "optim/gradient_scaler.h"
#include "session/batch_partitioner.h"
#include "session/evaluation_metrics.h"

namespace dpt {

struct StepInput {
  const StepRows* rows = nullptr;
  DrawnSamples order;  // the samples of this rank's epoch, in order
  // The step's number, from 0 over all epochs; it seeds random operators.
  uint64_t number = 0;
  uint64_t epoch = 0;  // from 0
  int64_t batch = 0;   // index in the epoch, from 0
  // The optimizer's formulas, one for each of session.parameter_groups, and the loss scale of this
  // step. Only valid when every earlier step is done: a worker that begins steps early uses
  // StepLoop::update() instead.
  std::span<const OptimizerStep> update{};
  double scale = 1;
  bool measured = false;  // gradients are measured in this step (RunSettings::measures)
  bool averaged = false;  // replicas that own their weights average them after this step
  // GPUs of several hosts: the first worker wants a checkpoint (StepResult::pause).
  bool asks_pause = false;
};

struct StepResult {
  double loss = 0;        // mean or sum over the global batch
  double weight = 0;      // divisor of the loss; the weight of `loss` in a mean over batches
  double rank0_loss = 0;  // rank 0's own mean, as DDP logs it
  // Norm of the gradients before clipping; only set with clip_grad_norm or a loss scale.
  double norm = 0;
  // The loss ignores every target of this step. As in PyTorch, the loss is then nan, all gradients
  // are 0, and the optimizer still makes its update.
  bool empty = false;
  bool finite = true;       // `loss` is finite or the step is empty; false: nothing was updated
  bool overflowed = false;  // with a loss scale: the gradients were not finite; nothing was updated
  int stop = 0;             // number of the signal at which all ranks agreed to stop; 0: continue
  // GPUs of several hosts: all ranks write a checkpoint after the steps that they have begun.
  bool pause = false;
};

struct Evaluation {
  double loss = 0;
  double accuracy = -1;             // -1: not defined for this loss, or not wanted
  std::vector<NamedValue> metrics;  // the others of `evaluate.metrics`, in their order
  // Metrics that are means over labels also have a value for each label: "f1.cat".
  std::vector<NamedValue> by_label;
  // counts[actual * classes + predicted]; empty: not wanted
  std::vector<int64_t> confusion_matrix;
  // The value of a metric by the name that users write; empty: it was not computed.
  std::optional<double> find(std::string_view metric) const;
};

// Squared norms of mean gradients, of the loss without scaling and clipping. Empty or 0: not
// measured.
struct GradientMeasures {
  std::vector<double> norms;  // L2 norm for each parameter that is trained
  // For the noise scale (train/noise_scale.h): of the mean gradient over the batch, and the mean of
  // those over each shard. samples, inverse_samples: of the batch, and the mean of 1 / samples over
  // its shards. Shards without samples do not count.
  double square = 0, shard_square = 0;
  double samples = 0, inverse_samples = 0;
  int shards = 0;
};

struct NonFiniteReport {
  std::string where;        // "the output of layer 'lin1' (linear) is the first that is not finite"
  std::string_view remedy;  // what the user can do
};

// The training steps of one epoch. A worker may begin several steps before it reports the first of
// them as done.
class StepLoop {
 public:
  virtual ~StepLoop() = default;
  // Fills `input` with the next step to begin; returns false at the end of the epoch. The pointers
  // in `input` stay valid until the next call, its `order` until the epoch ends.
  virtual bool next(StepInput& input) = 0;
  // Reports the result of a step: called once for each step, in order. An exception ends the run.
  virtual void done(const StepInput& input, const StepResult& result) = 0;

  // The number of updates in the whole run among the steps reported as done. Steps whose gradients
  // overflowed made none.
  virtual int64_t updates() const = 0;
  // The optimizer's formulas in this epoch after `updates` updates, one for each parameter group.
  // They are valid until the next call.
  virtual std::span<const OptimizerStep> update(int64_t updates) = 0;
};

// One worker. All workers of a run make the same calls in the same order. Thread: the worker's.
class StepExecutor {
 public:
  // The rank's prefetched inputs of the training and the evaluated set. Null: the worker reads them
  // itself.
  struct Samples {
    PrefetchStream* train = nullptr;
    PrefetchStream* test = nullptr;
  };
  virtual ~StepExecutor() = default;

  // Runs an epoch. Every step has been reported to `loop` when it returns.
  virtual void run(StepLoop& loop) = 0;

  // Computes loss and metrics of the evaluated set, each sample once. The numbers are the same on
  // every worker. `done`, if not empty, is called
  // with increasing numbers of batches that this worker has completed (on a GPU: submitted).
  // REQUIRES: session.data.test.
  using BatchesDone = std::function<void(int64_t batches)>;
  virtual Evaluation evaluate(const BatchesDone& done) = 0;

  // After a step that was not finite: repeats its forward pass and checks every result. Returns the
  // first non-finite value found; the answer is the same on every worker.
  virtual NonFiniteReport find_non_finite(const StepInput& input) = 0;

  // Before the first step of a resumed run: sets the number of past updates and the loss scaler.
  virtual void resume(int64_t /*updates*/, const GradientScaler::State&) {}

  // With several hosts, on all workers, after the first host's buffers have been filled and before
  // resume(): brings their weights and states to the other hosts.
  virtual void receive_start() {}

  // Between two steps, on all workers. Afterwards the first host's buffers hold the weights, the
  // running statistics and the optimizer states, except for states that own_states() returns.
  virtual void gather() {}
  // Between two steps: calls f for each piece of each optimizer state that only this worker has.
  // `state`: the state's number; `begin`: the piece's first element in the flat buffers.
  using EachState = std::function<void(int state, size_t begin, std::span<float> values)>;
  virtual void own_states(const EachState&) {}

  // With averages (RunSettings): exchanges the weights with their averages. A second call exchanges
  // them back, to the bit. Between two steps, on all workers; weights in the buffers follow with
  // gather() or finish() on GPUs.
  virtual void swap_average() {}

  // What was measured in the step that was just reported as done. REQUIRES: StepInput::measured and
  // StepResult::finite.
  virtual GradientMeasures measures(const StepInput&) { return {}; }
  // Seconds so far in which this worker, instead of computing, waited for samples or made its part
  // of a batch from them. Batches of short steps are sampled.
  virtual double data_seconds() const { return 0; }
  // The same for waits at barriers.
  virtual double barrier_seconds() const { return 0; }

  // After the last step, on all workers: brings weights and running statistics to the buffers.
  virtual void finish() {}
};

}  // namespace dpt
