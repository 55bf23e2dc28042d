#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/machine.h"
#include "base/run_delay.h"
#include "base/signals.h"
#include "base/version.h"
#include "checkpoint/gather_states.h"
#include "checkpoint/model_file.h"
#include "checkpoint/resume.h"
#include "comm/workers.h"
#include "engine/clock.h"
#include "engine/gpu/executor.h"
#include "optim/group_schedules.h"
#include "train/bottlenecks.h"
#include "train/data_wait.h"
#include "train/epoch_mean.h"
#include "train/evaluations.h"
#include "train/noise_scale.h"
#include "train/sample_order.h"
#include "train/scale_warnings.h"
#include "train/time_limit.h"

namespace dpt {
namespace {

std::unique_ptr<StepExecutor> make_executor(RankState& rank, int worker, PlanStepClock* clock,
                                            Trace* trace) {
  const Session& s = rank.session;
  const StepExecutor::Samples samples{rank.train.get(), rank.test.get()};
  if (s.devices.on_gpu())
    return make_gpu_executor(s, rank.buffers, rank.team, worker, rank.gpus, samples, clock);
  const Topology& topology = s.devices.topology;
  const bool first = worker % topology.workers_per_rank() == 0;
  const int number = worker + static_cast<int>(topology.workers_of_host(topology.host).begin);
  return std::make_unique<Executor>(s, rank.buffers, rank.team, number,
                                    first ? &rank.generator : nullptr, samples, clock, trace,
                                    worker == 0 ? rank.link : nullptr);
}

class Worker : private StepLoop {
 public:
  Worker(RankState& rank, int worker, const WorkerObservers& observers)
      : rank_(rank),
        session_(rank.session),
        worker_(worker),
        first_of_rank_(worker % session_.devices.topology.workers_per_rank() == 0),
        reporter_(observers.reporter),
        executor_(make_executor(rank, worker, observers.clock, observers.trace)),
        by_step_(schedule_interval(session_.settings.spec.schedule) == "step"),
        schedule_(std::make_unique<GroupSchedules>(
            session_.settings.spec.schedule, session_.parameter_groups.rates,
            by_step_ ? session_.length.steps : session_.length.epochs)),
        cycles_momentum_(session_.settings.cycles_momentum()),
        scaler_(session_.precision.scaler),
        evaluations_(session_),
        time_limit_(session_.settings.spec.minutes),
        mean_(session_),
        bottlenecks_(session_, rank.cores,
                     [delay = RunDelay()]() mutable { return delay.share(); }) {}

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
    executor_->receive_start();
    if (rank_.resumed) resume(*rank_.resumed);
    rank_.team.barrier(worker_);  // every worker is ready, and the initial weights are in place
    if (reporter_) reporter_->begin({.step = out_.steps, .epoch = epoch_, .of_epoch = done_});
    saved_s_ = now_s();
    time_limit_.begin(saved_s_);
    // done_ > 0: all steps may be done while the epoch's evaluation is missing.
    while (epoch_ < session_.length.epochs && (out_.steps < session_.length.steps || done_ > 0) &&
           !out_.stopped_by && !evaluations_.ends_run())
      epoch();
    if (session_.settings.averages())
      executor_->swap_average();  // the averages are the run's result
    executor_->finish();
    out_.scaler = scaler_.state();
    out_.epochs = epoch_;
    out_.best = evaluations_.best();
    out_.early_stop = evaluations_.early_stop();
    out_.stopped_early = evaluations_.ends_run();
    return out_;
  }

  void begin_epoch() {
    if (first_of_rank_) rank_.order = make_order(rank_, epoch_);
    mean_ = EpochMean(session_);
    skipped_before_ = scaler_.skipped();
    seconds_ = 0;
  }

  void begin_prefetch() {
    const BatchLoader& loader = *session_.data.loader;
    std::function<uint32_t(DrawnSample)> partner;
    if (loader.mixes())
      partner = [&loader, seed = AugmentSeed{static_cast<uint64_t>(session_.settings.spec.seed),
                                             static_cast<uint64_t>(epoch_)}](DrawnSample sample) {
        return loader.partner(sample, seed);
      };
    rank_.train->begin(rank_.order.samples(), begun_, partner);
  }

  void epoch() {
    begun_s_ = now_s();
    if (done_ == 0) begin_epoch();
    begun_ = done_;
    if (reporter_) reporter_->begin_epoch(epoch_ + 1, done_);
    if (first_of_rank_ && rank_.train) begin_prefetch();
    rank_.team.rank_barrier(worker_);
    times_before_ = times();
    data_wait_.begin_epoch(times_before_.data, times_before_.seconds);
    do {
      executor_->run(*this);
    } while (between_steps());
    const TrainingTimes after = times(), spent = after - times_before_;
    const bool whole = done_ == session_.batches.train->steps();
    const bool cut_short = !whole && (out_.stopped_by || evaluations_.ends_run());
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
                       .skipped = scaler_.skipped() - skipped_before_,
                       .data_wait = data_wait_.of_epoch(after.data, after.seconds)};
    if (!out_.stopped_by && !cut_short && evaluations_.due_after_epoch(epoch_ + 1, out_.steps))
      record.evaluation = evaluate();
    // Never mix the two: a test loss and a training loss are not comparable.
    if (record.evaluation)
      schedule_->metric(record.evaluation->loss);
    else if (!session_.data.test)
      schedule_->metric(record.loss);
    if (reporter_ && !cut_short) reporter_->epoch(record);
    if (reporter_) warn_of_bottlenecks(spent);
    ++epoch_;
    done_ = 0;
    if (whole && !out_.stopped_by && due()) save();
  }

  // Evaluates and saves what is due between two steps of an epoch. Returns whether steps follow.
  bool between_steps() {
    if (done_ == session_.batches.train->steps() || out_.steps >= session_.length.steps ||
        out_.stopped_by)
      return false;
    const bool evaluates = evaluations_.due_between(out_.steps);
    if (evaluates) evaluate_between();
    if (evaluations_.ends_run()) return false;
    return (pauses(out_.steps) && save()) || evaluates;
  }

  void evaluate_between() {
    seconds_ += now_s() - begun_s_;
    if (reporter_)
      rank_.team.set_progress(
          worker_, {.epoch = epoch_ + 1, .step = out_.steps, .phase = Phase::evaluating});
    const Evaluation result = evaluate();
    schedule_->metric(result.loss);
    if (reporter_)
      reporter_->evaluation({.evaluation = evaluations_.count(),
                             .step = out_.steps,
                             .epoch = epoch_ + 1,
                             .result = result});
    begun_s_ = now_s();
  }

  // Totals until now; `seconds` is the time.
  TrainingTimes times() const {
    if (!reporter_) return {};
    return {.seconds = now_s(),
            .data = executor_->data_seconds(),
            .barriers = executor_->barrier_seconds(),
            .steps = out_.steps};
  }
  void warn_of_bottlenecks(const TrainingTimes& epoch) {
    const std::string lines = bottlenecks_.after_epoch(epoch);
    if (!lines.empty()) reporter_->warn(lines);
  }

  // Calls f() while the weights are their averages, if there are any.
  template <class F>
  void with_average(F f) {
    if (session_.settings.averages()) executor_->swap_average();
    f();
    if (session_.settings.averages()) executor_->swap_average();
  }

  Evaluation evaluate() {
    const TrainingTimes begin = times();
    Evaluation out;
    with_average([&] {
      out = evaluate_weights();
      if (evaluations_.add(out, epoch_ + 1, out_.steps)) keep_best();
    });
    const TrainingTimes spent = times() - begin;
    times_before_ = times_before_ + spent;
    data_wait_.leave_out(spent.data, spent.seconds);
    return out;
  }

  Evaluation evaluate_weights() {
    if (first_of_rank_) draw_base_seed(rank_.generator);  // like PyTorch's loader of the set
    if (reporter_) reporter_->begin_evaluation();
    StepExecutor::BatchesDone done;
    if (reporter_) done = [this](int64_t batches) { reporter_->evaluated(batches); };
    return executor_->evaluate(done);
  }

  // Every worker must call it after the same evaluation.
  void keep_best() {
    if (!rank_.best_weights) return;
    rank_.team.barrier(worker_);
    executor_->gather();
    if (reporter_) rank_.best_weights->write(evaluations_.best(), rank_.buffers, scaler_.state());
    rank_.team.barrier_without_limit(worker_);
  }

  // Whether a checkpoint is due between two steps of an epoch, when `steps` are done.
  bool pauses(int64_t steps) const {
    const int64_t every = session_.settings.spec.save.every_steps;
    const bool by_steps = every > 0 && steps > 0 && steps % every == 0;
    return rank_.checkpoints && steps != saved_at_ &&
           (by_steps || rank_.team.agreed_pause() == steps || pause_at_ == steps);
  }
  // The first worker decides by its clock before step `number` (from 0) begins, and all others
  // learn it in that step. After the step, pauses() is true on every worker. On GPUs of several
  // hosts it asks in each step until all learn it from the same result, some steps later.
  void pause_by_time(int64_t number) {
    const double interval = 60 * session_.settings.spec.save.every_minutes.value_or(0);
    if (worker_ != 0 || session_.devices.topology.host != 0 || !rank_.checkpoints ||
        interval == 0 || number < next_look_)
      return;
    const double now = now_s();
    if (now - saved_s_ >= interval && session_.devices.gpus_span_hosts())
      asks_pause_ = true;
    else if (now - saved_s_ >= interval)
      rank_.team.publish_pause(next_whole(number));
    // Look at the clock less often: reading it costs a few percent of a one-microsecond step.
    constexpr int64_t kMostSteps = 64;
    look_every_ = now - looked_s_ < 1e-4 * interval ? std::min(2 * look_every_, kMostSteps) : 1;
    next_look_ = number + look_every_;
    looked_s_ = now;
  }
  // The number of steps done after step `number` (from 0), or after the first later one with which
  // replicas have equal weights. REQUIRES: the step is of this epoch.
  int64_t next_whole(int64_t number) const {
    const int64_t every = session_.plan.average_every;
    if (every == 0) return number + 1;
    const int64_t end_of_epoch = out_.steps - done_ + session_.batches.train->steps();
    return std::min({(number / every + 1) * every, end_of_epoch, session_.length.steps});
  }
  // Whether a checkpoint is due after an epoch.
  bool due() const {
    const int64_t every = session_.settings.spec.save.every_epochs;
    return epoch_ == session_.length.epochs || out_.steps >= session_.length.steps ||
           evaluations_.ends_run() || (every > 0 && epoch_ % every == 0) || pauses(out_.steps);
  }

  // Every worker must call it after the same step. Returns true, for use in loop conditions.
  bool save() {
    if (!rank_.checkpoints || saved_at_ == out_.steps) return true;
    saved_at_ = out_.steps;
    const int64_t epoch = done_ == 0 && epoch_ > 0 ? epoch_ : epoch_ + 1;  // the last with a step
    if (first_of_rank_)
      rank_.team.set_progress(worker_,
                              {.epoch = epoch, .step = out_.steps, .phase = Phase::saving});
    rank_.team.barrier(worker_);
    executor_->gather();
    std::vector<float> states;
    if (session_.devices.own_states())
      states = gather_states(session_.settings, session_.model, rank_.buffers, rank_.team, worker_,
                             *executor_);
    if (reporter_) {
      check_finite(session_.model, rank_.buffers, epoch, out_.steps);
      rank_.checkpoints->write(state(), rank_.buffers, states);
    }
    rank_.team.barrier_without_limit(
        worker_);  // nobody may change the buffers while they are written
    saved_s_ = now_s();
    asks_pause_ = false;
    return true;
  }

  TrainState state() {
    TrainState out{.step = out_.steps,
                   .epoch = epoch_,
                   .of_epoch = done_,
                   .lr = lr_,
                   .previous_lr = previous_lr_,
                   .seconds = done_ > 0 ? seconds_ + now_s() - begun_s_ : 0,
                   .skipped_before = skipped_before_,
                   .scaler = scaler_.state(),
                   .schedule = schedule_->state(),
                   .noise = noise_.state(),
                   .generator = rank_.generator,
                   .drawn_by = rank_.drawn_by,
                   .metrics_bytes = reporter_->sync_metrics(),
                   .build = version(),
                   .seed = session_.settings.spec.seed,
                   .optimizer = std::string(session_.settings.optimizer->name),
                   .steps_of_epoch = session_.batches.train->steps(),
                   .samples = order_of_samples(session_.devices)};
    mean_.write(out);
    evaluations_.write(out);
    // 0: a resuming run that scales its loss starts with its own scale
    if (!session_.precision.scaler.on) out.scaler.scale = 0;
    return out;
  }

  void resume(const TrainState& from) {
    out_.steps = saved_at_ = from.step;
    epoch_ = from.epoch;
    done_ = from.of_epoch;
    lr_ = from.lr;
    if (session_.settings.optimizer->uses_previous_lr) {
      previous_lr_ = from.previous_lr;
      // Further groups of a changed spec continue like the last one saved.
      previous_lr_.resize(session_.parameter_groups.rates.size(),
                          previous_lr_.empty() ? lr_ : previous_lr_.back());
    }
    seconds_ = from.seconds;
    skipped_before_ = from.skipped_before;
    mean_.read(from);
    evaluations_.read(from);
    GradientScaler::State scaler = from.scaler;
    if (scaler.scale == 0) scaler.scale = scaler_.scale();
    scaler_.restore(scaler);
    schedule_->restore(from.schedule);
    noise_.restore(from.noise);
    if (session_.devices.own_states())
      take_states(session_.model, rank_.resumed_states, *executor_);
    executor_->resume(updates(), scaler_.state());
    if (!first_of_rank_) return;
    // The order of this epoch; without reshuffling, that of the first epoch.
    rank_.generator = from.drawn_by;
    rank_.order = make_order(rank_, session_.settings.spec.data.reshuffle ? epoch_ : 0);
    rank_.generator = from.generator;
  }

  // A skipped step counts neither for the schedule nor for the optimizer.
  int64_t updates() const override { return out_.steps - scaler_.skipped(); }
  int64_t interval(int64_t updates) const { return by_step_ ? updates : epoch_; }
  std::span<const OptimizerStep> update(int64_t updates) override {
    const int64_t t = updates + 1;
    Momenta momenta;
    if (cycles_momentum_)
      momenta = [this, t](int64_t earlier) {
        return *schedule_->momentum(interval_of(earlier, t));
      };
    update_.clear();
    for (const ParameterGroup& group : session_.parameter_groups.groups)
      update_.push_back(session_.settings.optimizer->step(
          group.settings, t, lr_of_update(updates, group.rate), momenta));
    return update_;
  }
  // The interval of an update up to the present one; both count from 1. The epoch of earlier ones
  // is that of a run without skipped steps.
  int64_t interval_of(int64_t earlier, int64_t present) const {
    if (by_step_ || earlier == present) return interval(earlier - 1);
    return std::min(epoch_, (earlier - 1) / session_.batches.train->steps());
  }
  // The learning rate for the update after `updates` updates, as OptimizerType::step() takes it.
  double lr_of_update(int64_t updates, size_t rate) {
    if (!session_.settings.optimizer->uses_previous_lr || updates == 0)
      return schedule_->lr(interval(updates), rate);
    // Later ones follow steps under way, during which the schedule does not change.
    return updates == this->updates() ? previous_lr_[rate]
                                      : schedule_->lr(interval(updates - 1), rate);
  }
  // Call it when an update is done, before it counts.
  void keep_lr() {
    if (!session_.settings.optimizer->uses_previous_lr) return;
    previous_lr_.resize(session_.parameter_groups.rates.size());
    for (size_t i = 0; i < previous_lr_.size(); ++i)
      previous_lr_[i] = schedule_->lr(interval(updates()), i);
  }

  bool next(StepInput& input) override {
    const int64_t number = out_.steps + begun_ - done_;
    if (begun_ == session_.batches.train->steps() || number >= session_.length.steps ||
        out_.stopped_by || pauses(number) || evaluations_.due_between(number))
      return false;
    session_.batches.train->step(begun_, rows_);
    input = {.rows = &rows_,
             .order = rank_.order.samples(),
             .number = static_cast<uint64_t>(number),
             .epoch = static_cast<uint64_t>(epoch_),
             .batch = begun_++,
             .update = update(updates()),
             .scale = scaler_.scale(),
             .measured = session_.settings.measures(static_cast<uint64_t>(number)),
             .averaged = session_.plan.average_every > 0 && next_whole(number) == number + 1};
    if (first_of_rank_)
      rank_.team.set_progress(worker_,
                              {.epoch = epoch_ + 1, .step = number + 1, .phase = Phase::training});
    if (reporter_ && time_limit_.over(now_s)) ask_to_stop();
    rank_.team.publish_stop(worker_);
    pause_by_time(number);
    input.asks_pause = asks_pause_;
    return true;
  }

  // A signal that came before stays.
  void ask_to_stop() {
    int none = 0;
    rank_.team.stop_word().compare_exchange_strong(none, kTimeLimitReached);
  }

  void done(const StepInput& input, const StepResult& result) override {
    if (!result.finite && !result.overflowed) diverged(result, input);
    const double scale = scaler_.scale();
    lr_ = schedule_->lr(interval(updates()));
    if (!result.overflowed) keep_lr();
    scaler_.update(result.overflowed);
    if (scaler_.skipped_in_a_row() == kMostSkipped) overflows(input, scale);
    ++out_.steps;
    ++done_;
    out_.stopped_by = result.stop;
    if (result.pause) pause_at_ = out_.steps + begun_ - done_;  // steps that have begun
    if (result.finite) mean_.add(result);
    if (!reporter_) return;
    StepRecord record{
        .step = out_.steps,
        .epoch = epoch_ + 1,
        .of_epoch = done_,
        .loss = session_.settings.spec.log.loss == "rank0" ? result.rank0_loss : result.loss,
        .lr = lr_,
        .norm = result.norm,
        .scale = scale,
        .skipped = result.overflowed,
        .empty = result.empty,
        .rows = input.rows,
        .waited_s = executor_->data_seconds()};
    if (const int64_t every = session_.settings.spec.log.every;
        every > 0 && out_.steps % every == 0)
      measure(record, input, result);
    reporter_->step(record);
  }

  // Adds what only recorded steps have.
  void measure(StepRecord& record, const StepInput& input, const StepResult& result) {
    record.data_wait = data_wait_.since_record(record.waited_s, now_s());
    if (!input.measured) return;
    const GradientMeasures measured =
        result.finite ? executor_->measures(input) : GradientMeasures();
    record.grad_norms = measured.norms;
    if (!session_.settings.spec.log.noise_scale) return;
    if (!result.overflowed) noise_.add(measured);
    record.noise_scale = noise_.value();
  }

  static NonFiniteReport all_weightless() {
    return {
        "every target of the step has the class weight 0 or is ignored, so the mean divides 0 "
        "by 0",
        "set ignore_index to the class instead of giving it the weight 0, or use a larger "
        "batch"};
  }

  [[noreturn]] void diverged(const StepResult& result, const StepInput& input) {
    const bool weightless = session_.model.divisor == Divisor::targets && result.weight == 0;
    const NonFiniteReport found = weightless ? all_weightless() : executor_->find_non_finite(input);
    std::string remedy(found.remedy);
    for (const std::string& scale : scale_warnings(session_)) remedy += "; " + scale;
    fail(Fault::diverged, "the loss is {} at epoch {}, step {}: {}. No weights are saved; {}",
         std::isnan(result.loss) ? "nan" : fmt::format("{}", result.loss), epoch_ + 1,
         input.number + 1, found.where, remedy);
  }

  [[noreturn]] void overflows(const StepInput& input, double scale) const {
    fail(Fault::diverged,
         "the gradients were not finite in {} consecutive steps, the last at epoch {}, step {}, "
         "although the loss scale is only {:g}. No weights are saved; lower the learning rate, "
         "check the data, or train in bf16, which has the range of fp32",
         kMostSkipped, epoch_ + 1, input.number + 1, scale);
  }

  static constexpr int64_t kMostSkipped = 50;
  RankState& rank_;
  const Session& session_;
  int worker_;
  bool first_of_rank_;
  Reporter* reporter_;
  std::unique_ptr<StepExecutor> executor_;
  bool by_step_;
  double lr_ = 0;
  std::vector<double> previous_lr_;  // TrainState::previous_lr
  std::unique_ptr<GroupSchedules> schedule_;
  bool cycles_momentum_;
  GradientScaler scaler_;
  Evaluations evaluations_;
  TimeLimit time_limit_;
  int64_t saved_at_ = -1;                     // steps done at the last checkpoint
  int64_t pause_at_ = -1;                     // steps done at the next one; StepResult::pause
  bool asks_pause_ = false;                   // StepInput::asks_pause
  double saved_s_ = 0, looked_s_ = 0;         // times: last checkpoint, last look at the clock
  int64_t next_look_ = 0, look_every_ = 1;    // next step to look at the clock; distance in steps
  EpochMean mean_;                            // of this epoch, like the members below
  int64_t epoch_ = 0, begun_ = 0, done_ = 0;  // epoch from 0; steps begun and done
  int64_t skipped_before_ = 0;                // steps skipped before this epoch
  double seconds_ = 0, begun_s_ = 0;  // time before resuming, and when this process began the epoch
  StepRows rows_;                     // of the step that began last
  std::vector<OptimizerStep> update_;  // see update()
  TrainingTimes times_before_;         // when the epoch began, without its evaluations
  DataWait data_wait_;
  NoiseScale noise_;
  Bottlenecks bottlenecks_;
  Outcome out_;
};

}  // namespace

RankState::RankState(const Session& s, const Buffers& b, Team t, int r, const Generator& g)
    : session(s),
      buffers(b),
      team(t),
      rank(r),
      cores(static_cast<int>(usable_cores().size())),
      generator(g),
      drawn_by(g) {
  if (s.data.train.reader)
    train = std::make_unique<PrefetchStream>(s.data.train, *s.batches.train, s.devices.topology,
                                             number());
  if (s.data.test && s.data.test->reader)
    test = std::make_unique<PrefetchStream>(*s.data.test, *s.batches.test, s.devices.topology,
                                            number());
}

Outcome train_worker(RankState& rank, int worker, const WorkerObservers& observers) {
  return Worker(rank, worker, observers).run();
}

}  // namespace dpt
