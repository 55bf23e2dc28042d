// What the training loop asks of a worker, whatever it computes on: steps, evaluations, and where a
// number came from that is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "engine/prefetch_stream.h"
#include "graph/optimizer_step.h"
#include "optim/gradient_scaler.h"
#include "session/step_rows.h"

namespace dpt {

struct StepInput {
  const StepRows* rows = nullptr;
  std::span<const uint32_t> order;        // of the samples in this epoch, of this rank
  uint64_t number = 0;                    // of the step, from 0, over all epochs
  uint64_t epoch = 0;                     // from 0
  int64_t batch = 0;                      // of the epoch, from 0
  const OptimizerStep* update = nullptr;  // this and the next one: if all steps before are done
  double scale = 1;                       // of the loss
};

struct StepResult {
  double loss = 0;        // of the whole batch
  double weight = 0;      // the divisor: what `loss` counts in a mean over batches
  double rank0_loss = 0;  // rank 0's own mean
  double norm = 0;        // of the gradients before clipping, where they are clipped by norm
  // The loss ignores all targets of the step. As in PyTorch, the loss is nan, all gradients are 0,
  // and the optimizer makes its step.
  bool empty = false;
  bool finite = true;       // the loss, or the step is empty; false: nothing was updated
  bool overflowed = false;  // where the loss is scaled: the gradients were not finite, the same
  int stop = 0;             // the signal that all ranks agreed to stop at; 0: go on
};

struct Evaluation {
  double loss = 0;
  double accuracy = -1;  // -1: has no meaning for this loss
};

struct Finding {
  std::string where;        // "the output of layer 'lin1' (linear) is the first that is not finite"
  std::string_view remedy;  // what the user can do
};

// The steps of one epoch, as the training loop gives them to a worker, which may begin some before
// those before them are done.
class StepLoop {
 public:
  virtual ~StepLoop() = default;
  // The step to begin next; false: there is none. What `input` points to stays until the next call,
  // its order until the epoch ends.
  virtual bool next(StepInput& input) = 0;
  // What became of it, once for each and in the same order. May throw, which ends the run.
  virtual void done(const StepInput& input, const StepResult& result) = 0;

  // How many of the steps that are done changed the weights, over the whole run: others overflowed.
  virtual int64_t updates() const = 0;
  // What the optimizer does in this epoch when so many updates are behind it.
  virtual OptimizerStep update(int64_t updates) = 0;
};

// All workers make the same calls in the same order. Thread: the worker's own.
class StepExecutor {
 public:
  // Of the rank, where samples are made on the way; null: the worker makes them itself.
  struct Samples {
    Ahead* train = nullptr;
    Ahead* test = nullptr;
  };
  virtual ~StepExecutor() = default;

  // An epoch: all of its steps are done when it returns.
  virtual void run(StepLoop& loop) = 0;

  // Over the whole test set, every sample once. done(n), where it is not empty: so many batches of
  // this worker are done, or for a GPU submitted; called in rising order. REQUIRES: session.test.
  using BatchesDone = std::function<void(int64_t batches)>;
  virtual Evaluation evaluate(const BatchesDone& done) = 0;

  // Of a step that was not finite, while its end is told: computes its forward part again and looks
  // at every result. The first place found, the same on every worker.
  virtual Finding find_trouble(const StepInput& input) = 0;

  // Before the first step of a run that goes on, of which so many updates are done.
  virtual void go_on(int64_t /*updates*/, const GradientScaler::State&) {}

  // Between two steps, all workers: when it returns, weights, running statistics and, but for
  // own_states(), optimizer states lie in the buffers, whatever device they are on.
  virtual void gather() {}
  // Between two steps: the optimizer's states that this worker alone has, piece by piece. f(number
  // of the state, where the piece begins in the flat buffers, its elements).
  using EachState = std::function<void(int state, size_t begin, std::span<float> values)>;
  virtual void own_states(const EachState&) {}

  // After the last step: weights and running statistics are in the buffers.
  virtual void finish() {}
};

}  // namespace dpt
