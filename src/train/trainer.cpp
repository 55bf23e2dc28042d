#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/version.h"
#include "checkpoint/gather_states.h"
#include "checkpoint/resume.h"
#include "comm/workers.h"
#include "engine/clock.h"
#include "engine/gpu/executor.h"
#include "optim/schedule.h"

namespace dpt {
namespace {

Order make_order(RankState& rank, int64_t epoch) {
  const Session& s = rank.session;
  const DataSpec& data = s.spec.data;
  const auto epoch_index = static_cast<uint64_t>(data.reshuffle ? epoch : 0);
  if (s.topology.reproducible) {
    draw_base_seed(rank.generator);
    return reproducible_order(s.train.size(), data.shuffle, static_cast<uint64_t>(s.spec.seed),
                              epoch_index);
  }
  if (s.topology.per_replica_sampling) {  // as with DistributedSampler, the seed is 0 whatever
                                          // torch.manual_seed was
    draw_base_seed(rank.generator);
    return distributed_order(s.batches->assignment(),
                             s.topology.replica(rank.rank * s.topology.workers_per_rank()),
                             data.shuffle, 0, epoch_index);
  }
  const bool kept = data.shuffle && !data.reshuffle;
  Order order;
  if (kept && epoch > 0) {
    order = std::move(rank.order);
  } else {
    rank.drawn_by = rank.generator;
    order = loader_order(s.train.size(), data.shuffle, rank.generator);
  }
  // A fixed order is drawn before the first loader exists, and every loader draws a base seed.
  if (kept) draw_base_seed(rank.generator);
  return order;
}

// The mean loss that an epoch's line shows; the same on every worker.
class EpochMean {
 public:
  explicit EpochMean(const Session& s)
      : rank0_(s.spec.log.loss == "rank0"), weighted_(s.divisor != Divisor::one) {}
  void add(const StepResult& step) {
    const double loss = rank0_ ? step.rank0_loss : step.loss;
    if (std::isnan(loss)) return;  // all targets (or all of rank 0's) are ignored
    const double weight = !rank0_ && weighted_ ? step.weight : 1;
    sum_ += loss * weight;
    weight_ += weight;
  }
  double value() const { return sum_ / weight_; }  // NaN without any step, as in PyTorch
  void write(TrainState& to) const { to.loss_sum = sum_, to.loss_weight = weight_; }
  void read(const TrainState& from) { sum_ = from.loss_sum, weight_ = from.loss_weight; }

 private:
  bool rank0_ = false, weighted_ = false;
  double sum_ = 0, weight_ = 0;
};

std::unique_ptr<StepExecutor> make_executor(RankState& rank, int worker, PlanStepClock* clock,
                                            Trace* trace) {
  const Session& s = rank.session;
  const StepExecutor::Samples samples{rank.train.get(), rank.test.get()};
  if (s.on_gpu())
    return make_gpu_executor(s, rank.buffers, rank.team, worker, rank.gpus, samples, clock);
  const bool first = worker % s.topology.workers_per_rank() == 0;
  return std::make_unique<Executor>(s, rank.buffers, rank.team, worker,
                                    first ? &rank.generator : nullptr, samples, clock, trace);
}

class Worker : private StepLoop {
 public:
  Worker(RankState& rank, int worker, const WorkerObservers& observers)
      : rank_(rank),
        session_(rank.session),
        worker_(worker),
        first_of_rank_(worker % session_.topology.workers_per_rank() == 0),
        reporter_(observers.reporter),
        executor_(make_executor(rank, worker, observers.clock, observers.trace)),
        by_step_(schedule_interval(session_.spec.schedule) == "step"),
        base_lr_(session_.optimizer->lr(session_.spec.optimizer.settings)),
        schedule_(make_schedule(session_.spec.schedule, base_lr_,
                                by_step_ ? session_.steps : session_.epochs)),
        scaler_(session_.scaler),
        mean_(session_) {}

  Outcome run() {
    try {
      return train();
    } catch (...) {  // report first: destroying a GPU executor may wait for other ranks
      report_failure(rank_.team, rank_.rank);
      throw;
    }
  }

 private:
  Outcome train() {
    if (rank_.resumed) resume(*rank_.resumed);
    rank_.team.barrier(worker_);  // every worker is ready, and the initial weights are in place
    if (reporter_) reporter_->begin({.step = out_.steps, .epoch = epoch_, .of_epoch = done_});
    saved_s_ = now_s();
    // done_ > 0: all steps may be done while the epoch's evaluation is missing.
    while (epoch_ < session_.epochs && (out_.steps < session_.steps || done_ > 0) &&
           !out_.stopped_by)
      epoch();
    executor_->finish();
    out_.scaler = scaler_.state();
    return out_;
  }

  void begin_epoch() {
    if (first_of_rank_) rank_.order = make_order(rank_, epoch_);
    mean_ = EpochMean(session_);
    skipped_before_ = scaler_.skipped();
    seconds_ = 0;
  }

  void epoch() {
    begun_s_ = now_s();
    if (done_ == 0) begin_epoch();
    begun_ = done_;
    if (reporter_) reporter_->begin_epoch(epoch_ + 1, done_);
    if (first_of_rank_ && rank_.train) rank_.train->begin(rank_.order.indices, begun_);
    rank_.team.rank_barrier(worker_);
    do {
      executor_->run(*this);
    } while (done_ < session_.batches->steps() && pauses(out_.steps) && save());
    const bool whole = done_ == session_.batches->steps();
    // Saved before the evaluation: a resumed run repeats what follows.
    if (!whole || out_.stopped_by) save();
    if (reporter_)
      rank_.team.set_progress(
          worker_, {.epoch = epoch_ + 1, .step = out_.steps, .phase = Phase::evaluating});
    EpochRecord record{.epoch = epoch_ + 1,
                       .steps = done_,
                       .loss = mean_.value(),
                       .lr = lr_,
                       .seconds = seconds_ + now_s() - begun_s_,
                       .scale = scaler_.scale(),
                       .skipped = scaler_.skipped() - skipped_before_};
    if (session_.test && !out_.stopped_by && (epoch_ + 1) % session_.spec.evaluate.every == 0) {
      if (first_of_rank_) draw_base_seed(rank_.generator);  // like PyTorch's loader of the test set
      record.evaluation = evaluate();
    }
    // Never mix the two: a test loss and a training loss are not comparable.
    if (record.evaluation)
      schedule_->metric(record.evaluation->loss);
    else if (!session_.test)
      schedule_->metric(record.loss);
    const bool cut_short = out_.stopped_by && !whole;
    if (reporter_ && !cut_short) reporter_->epoch(record);
    ++epoch_;
    done_ = 0;
    if (whole && !out_.stopped_by && due()) save();
  }

  Evaluation evaluate() {
    if (!reporter_) return executor_->evaluate({});
    reporter_->begin_evaluation();
    return executor_->evaluate([this](int64_t batches) { reporter_->evaluated(batches); });
  }

  // Whether a checkpoint is due between two steps of an epoch, when `steps` are done.
  bool pauses(int64_t steps) const {
    const int64_t every = session_.spec.save.every_steps;
    const bool by_steps = every > 0 && steps > 0 && steps % every == 0;
    return rank_.checkpoints && steps != saved_at_ &&
           (by_steps || rank_.team.agreed_pause() == steps);
  }
  // The first worker decides by its clock before step `number` (from 0) begins, and all others
  // learn it in that step. After the step, pauses() is true on every worker.
  void pause_by_time(int64_t number) {
    const double interval = 60 * session_.spec.save.every_minutes.value_or(0);
    if (worker_ != 0 || !rank_.checkpoints || interval == 0 || number < next_look_) return;
    const double now = now_s();
    if (now - saved_s_ >= interval) rank_.team.publish_pause(number + 1);
    // Look at the clock less often: reading it costs a few percent of a one-microsecond step.
    constexpr int64_t kMostSteps = 64;
    look_every_ = now - looked_s_ < 1e-4 * interval ? std::min(2 * look_every_, kMostSteps) : 1;
    next_look_ = number + look_every_;
    looked_s_ = now;
  }
  // Whether a checkpoint is due after an epoch.
  bool due() const {
    const int64_t every = session_.spec.save.every_epochs;
    return epoch_ == session_.epochs || out_.steps >= session_.steps ||
           (every > 0 && epoch_ % every == 0) || pauses(out_.steps);
  }

  // Every worker must call it after the same step. Returns true, for use in loop conditions.
  bool save() {
    if (!rank_.checkpoints || saved_at_ == out_.steps) return true;
    saved_at_ = out_.steps;
    if (first_of_rank_)
      rank_.team.set_progress(worker_,
                              {.epoch = epoch_ + 1, .step = out_.steps, .phase = Phase::saving});
    rank_.team.barrier(worker_);
    executor_->gather();
    std::vector<float> states;
    if (session_.own_states())
      states = gather_states(session_, rank_.buffers, rank_.team, worker_, *executor_);
    if (reporter_) rank_.checkpoints->write(state(), rank_.buffers, states);
    rank_.team.barrier_without_limit(
        worker_);  // nobody may change the buffers while they are written
    saved_s_ = now_s();
    return true;
  }

  TrainState state() {
    TrainState out{.step = out_.steps,
                   .epoch = epoch_,
                   .of_epoch = done_,
                   .lr = lr_,
                   .seconds = done_ > 0 ? seconds_ + now_s() - begun_s_ : 0,
                   .skipped_before = skipped_before_,
                   .scaler = scaler_.state(),
                   .schedule = schedule_->state(),
                   .generator = rank_.generator,
                   .drawn_by = rank_.drawn_by,
                   .metrics_bytes = reporter_->metrics_bytes(),
                   .build = version(),
                   .seed = session_.spec.seed,
                   .optimizer = std::string(session_.optimizer->name),
                   .steps_of_epoch = session_.batches->steps(),
                   .samples = order_of_samples(session_)};
    mean_.write(out);
    // 0: a resuming run that scales its loss starts with its own scale
    if (!session_.scaler.on) out.scaler.scale = 0;
    return out;
  }

  void resume(const TrainState& from) {
    out_.steps = saved_at_ = from.step;
    epoch_ = from.epoch;
    done_ = from.of_epoch;
    lr_ = from.lr;
    seconds_ = from.seconds;
    skipped_before_ = from.skipped_before;
    mean_.read(from);
    GradientScaler::State scaler = from.scaler;
    if (scaler.scale == 0) scaler.scale = scaler_.scale();
    scaler_.restore(scaler);
    schedule_->restore(from.schedule);
    if (session_.own_states()) take_states(session_, rank_.resumed_states, *executor_);
    executor_->resume(updates(), scaler_.state());
    if (!first_of_rank_) return;
    // The order of this epoch; without reshuffling, that of the first epoch.
    rank_.generator = from.drawn_by;
    rank_.order = make_order(rank_, session_.spec.data.reshuffle ? epoch_ : 0);
    rank_.generator = from.generator;
  }

  // A skipped step counts neither for the schedule nor for the optimizer.
  int64_t updates() const override { return out_.steps - scaler_.skipped(); }
  int64_t interval(int64_t updates) const { return by_step_ ? updates : epoch_; }
  OptimizerStep update(int64_t updates) override {
    const int64_t k = interval(updates);
    return session_.optimizer->step(session_.spec.optimizer.settings, updates + 1, schedule_->lr(k),
                                    schedule_->momentum(k));
  }

  bool next(StepInput& input) override {
    const int64_t number = out_.steps + begun_ - done_;
    if (begun_ == session_.batches->steps() || number >= session_.steps || out_.stopped_by ||
        pauses(number))
      return false;
    update_ = update(updates());
    session_.batches->step(begun_, rows_);
    input = {.rows = &rows_,
             .order = rank_.order.indices,
             .number = static_cast<uint64_t>(number),
             .epoch = static_cast<uint64_t>(epoch_),
             .batch = begun_++,
             .update = &update_,
             .scale = scaler_.scale()};
    if (first_of_rank_)
      rank_.team.set_progress(worker_,
                              {.epoch = epoch_ + 1, .step = number + 1, .phase = Phase::training});
    rank_.team.publish_stop(worker_);
    pause_by_time(number);
    return true;
  }

  void done(const StepInput& input, const StepResult& result) override {
    if (!result.finite && !result.overflowed) diverged(result, input);
    const double scale = scaler_.scale();
    lr_ = schedule_->lr(interval(updates()));
    scaler_.update(result.overflowed);
    if (scaler_.skipped_in_a_row() == kMostSkipped) overflows(input, scale);
    ++out_.steps;
    ++done_;
    out_.stopped_by = result.stop;
    if (result.finite) mean_.add(result);
    if (reporter_)
      reporter_->step({.step = out_.steps,
                       .epoch = epoch_ + 1,
                       .of_epoch = done_,
                       .loss = session_.spec.log.loss == "rank0" ? result.rank0_loss : result.loss,
                       .lr = lr_,
                       .norm = result.norm,
                       .scale = scale,
                       .skipped = result.overflowed,
                       .empty = result.empty,
                       .rows = input.rows});
  }

  [[noreturn]] void diverged(const StepResult& result, const StepInput& input) {
    const bool weightless = session_.divisor == Divisor::targets && result.weight == 0;
    const NonFiniteReport found = weightless ? kWeightless : executor_->find_non_finite(input);
    fail(Fault::diverged, "the loss is {} at epoch {}, step {}: {}. No weights are saved; {}",
         std::isnan(result.loss) ? "nan" : fmt::format("{}", result.loss), epoch_ + 1,
         input.number + 1, found.where, found.remedy);
  }

  [[noreturn]] void overflows(const StepInput& input, double scale) const {
    fail(Fault::diverged,
         "the gradients are not finite in {} steps in a row, the last at epoch {}, step {}, though "
         "the loss is scaled by {:g} only. No weights are saved; lower the learning rate, look at "
         "the data, or train in bf16, which has the range of fp32",
         kMostSkipped, epoch_ + 1, input.number + 1, scale);
  }

  static constexpr int64_t kMostSkipped = 50;
  inline static const NonFiniteReport kWeightless = {
      "every target of the step has the class weight 0 or is ignored, so the mean divides 0 by 0",
      "name the class as ignore_index instead of giving it the weight 0, or take a larger batch"};
  RankState& rank_;
  const Session& session_;
  int worker_;
  bool first_of_rank_;
  Reporter* reporter_;
  std::unique_ptr<StepExecutor> executor_;
  bool by_step_;
  double base_lr_, lr_ = 0;
  std::unique_ptr<Schedule> schedule_;
  GradientScaler scaler_;
  int64_t saved_at_ = -1;                     // steps done at the last checkpoint
  double saved_s_ = 0, looked_s_ = 0;         // times: last checkpoint, last look at the clock
  int64_t next_look_ = 0, look_every_ = 1;    // next step to look at the clock; distance in steps
  EpochMean mean_;                            // of this epoch, like the members below
  int64_t epoch_ = 0, begun_ = 0, done_ = 0;  // epoch from 0; steps begun and done
  int64_t skipped_before_ = 0;                // steps skipped before this epoch
  double seconds_ = 0, begun_s_ = 0;  // time before resuming, and when this process began the epoch
  StepRows rows_;                     // of the step that began last
  OptimizerStep update_;
  Outcome out_;
};

}  // namespace

RankState::RankState(const Session& s, const Buffers& b, Team t, int r, const Generator& g)
    : session(s), buffers(b), team(t), rank(r), generator(g), drawn_by(g) {
  if (s.train.reader) train = std::make_unique<PrefetchStream>(s.train, *s.batches, s.topology, r);
  if (s.test && s.test->reader)
    test = std::make_unique<PrefetchStream>(*s.test, *s.test_batches, s.topology, r);
}

Outcome train_worker(RankState& rank, int worker, const WorkerObservers& observers) {
  return Worker(rank, worker, observers).run();
}

}  // namespace dpt
