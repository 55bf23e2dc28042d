#include "train/trainer.h"

#include <cmath>

#include <fmt/format.h>

#include "base/fail.h"
#include "optim/schedule.h"
#include "train/clock.h"
#include "train/device_executor.h"

namespace dpt {
namespace {

Order make_order(RankState& rank, int64_t epoch) {
  const Session& s = rank.session;
  const DataSpec& data = s.spec.data;
  const auto turn = static_cast<uint64_t>(data.reshuffle ? epoch : 0);
  if (s.who.reproducible) {
    if (s.spec.random == "torch")
      rank.generator.random_i64();  // torch's loader draws its base seed before the masks
    return reproducible_order(s.train.size(), data.shuffle, static_cast<uint64_t>(s.spec.seed),
                              turn);
  }
  if (s.who.dealt)  // its seed is 0, whatever torch.manual_seed was
    return distributed_order(s.batches->deal(), s.who.replica(rank.rank * s.who.workers_per_rank()),
                             data.shuffle, 0, turn);
  if (epoch > 0 && !data.reshuffle) return std::move(rank.order);
  return loader_order(s.train.size(), data.shuffle, rank.generator);
}

// What the epoch's line is made of; the same on every worker.
class EpochMean {
 public:
  explicit EpochMean(const Session& s)
      : rank0_(s.spec.log.loss == "rank0"), weighted_(s.divisor != Divisor::one) {}
  void add(const StepResult& step) {
    const double weight = !rank0_ && weighted_ ? step.weight : 1;
    sum_ += (rank0_ ? step.rank0_loss : step.loss) * weight;
    weight_ += weight;
  }
  double value() const { return weight_ > 0 ? sum_ / weight_ : 0; }

 private:
  bool rank0_, weighted_;
  double sum_ = 0, weight_ = 0;
};

std::unique_ptr<StepExecutor> make_executor(RankState& rank, int worker, StageClock* clock,
                                            Trace* trace) {
  const Session& s = rank.session;
  const StepExecutor::Samples samples{rank.train.get(), rank.test.get()};
  if (s.on_gpu())
    return std::make_unique<DeviceExecutor>(s, rank.buffers, rank.team, rank.open_gpu(), samples,
                                            clock);
  const bool first = worker % s.who.workers_per_rank() == 0;
  return std::make_unique<Executor>(s, rank.buffers, rank.team, worker,
                                    first ? &rank.generator : nullptr, samples, clock, trace);
}

class Worker {
 public:
  Worker(RankState& rank, int worker, Reporter* reporter, StageClock* clock, Trace* trace)
      : rank_(rank),
        session_(rank.session),
        worker_(worker),
        first_of_rank_(worker % session_.who.workers_per_rank() == 0),
        reporter_(reporter),
        executor_(make_executor(rank, worker, clock, trace)),
        by_step_(schedule_interval(session_.spec.schedule) == "step"),
        base_lr_(session_.optimizer->lr(session_.spec.optimizer.settings)),
        schedule_(make_schedule(session_.spec.schedule, base_lr_,
                                by_step_ ? session_.steps : session_.epochs)),
        scaler_(session_.scaler) {}

  Outcome run() {
    rank_.team.meet(worker_);  // everybody is ready, and the first weights are there
    if (reporter_) reporter_->begin();
    for (int64_t e = 0; e < session_.epochs && out_.steps < session_.steps && !out_.stopped_by; ++e)
      epoch(e);
    executor_->finish();
    out_.scale = scaler_.scale();
    out_.growth_tracker = scaler_.growth_tracker();
    return out_;
  }

 private:
  void epoch(int64_t e) {
    const double start = now_s();
    if (first_of_rank_) rank_.order = make_order(rank_, e);
    if (first_of_rank_ && rank_.train) rank_.train->begin(rank_.order.indices);
    rank_.team.meet_rank(worker_);
    EpochMean mean(session_);
    const int64_t begin = out_.steps, skipped = scaler_.skipped();
    for (int64_t b = 0; b < session_.batches->steps(); ++b) {
      if (out_.steps == session_.steps || out_.stopped_by) break;
      step(e, b, mean);
    }
    if (reporter_) rank_.team.set_progress(worker_, {e + 1, out_.steps, Phase::evaluating});
    EpochRecord record{.epoch = e + 1,
                       .steps = out_.steps - begin,
                       .loss = mean.value(),
                       .lr = lr_,
                       .seconds = now_s() - start,
                       .scale = scaler_.scale(),
                       .skipped = scaler_.skipped() - skipped};
    if (session_.test && !out_.stopped_by && (e + 1) % session_.spec.evaluate.every == 0) {
      if (first_of_rank_ && session_.spec.random == "torch")
        rank_.generator.random_i64();  // torch's loader of the test set draws its base seed
      record.evaluation = executor_->evaluate();
    }
    // Of two sorts of losses neither says whether the other got better.
    if (record.evaluation)
      schedule_->metric(record.evaluation->loss);
    else if (!session_.test)
      schedule_->metric(record.loss);
    const bool cut_short = out_.stopped_by && record.steps < session_.batches->steps();
    if (reporter_ && !cut_short) reporter_->epoch(record);
  }

  void step(int64_t e, int64_t b, EpochMean& mean) {
    // A step that is skipped counts neither for the schedule nor for the optimizer.
    const int64_t updates = out_.steps - scaler_.skipped();
    const int64_t k = by_step_ ? updates : e;
    lr_ = schedule_->lr(k);
    const OptimizerStep update = session_.optimizer->step(session_.spec.optimizer.settings,
                                                          updates + 1, lr_, schedule_->momentum(k));
    session_.batches->step(b, rows_);
    const StepInput input{&rows_,
                          rank_.order.indices,
                          static_cast<uint64_t>(out_.steps),
                          static_cast<uint64_t>(e),
                          b,
                          &update,
                          scaler_.scale()};
    if (first_of_rank_) rank_.team.set_progress(worker_, {e + 1, out_.steps + 1, Phase::training});
    rank_.team.publish_stop(worker_);
    const StepResult result = executor_->step(input);
    if (!result.finite && !result.overflowed) diverged(e, result, input);
    scaler_.update(result.overflowed);
    if (scaler_.skipped_in_a_row() == kMostSkipped) overflows(e, input);
    ++out_.steps;
    out_.stopped_by = result.stop;
    if (result.finite) mean.add(result);
    if (reporter_)
      reporter_->step({.step = out_.steps,
                       .epoch = e + 1,
                       .of_epoch = b + 1,
                       .loss = session_.spec.log.loss == "rank0" ? result.rank0_loss : result.loss,
                       .lr = lr_,
                       .norm = result.norm,
                       .scale = input.scale,
                       .skipped = result.overflowed,
                       .rows = &rows_});
  }

  [[noreturn]] void diverged(int64_t e, const StepResult& result, const StepInput& input) {
    const Finding found = executor_->find_trouble(input);
    fail(Fault::diverged, "the loss is {} at epoch {}, step {}: {}. No weights are saved; {}",
         std::isnan(result.loss) ? "nan" : fmt::format("{}", result.loss), e + 1, input.number + 1,
         found.where, found.remedy);
  }

  [[noreturn]] void overflows(int64_t e, const StepInput& input) const {
    fail(Fault::diverged,
         "the gradients are not finite in {} steps in a row, the last at epoch {}, step {}, though "
         "the loss is scaled by {:g} only. No weights are saved; lower the learning rate, look at "
         "the data, or train in bf16, which has the range of fp32",
         kMostSkipped, e + 1, input.number + 1, input.scale);
  }

  static constexpr int64_t kMostSkipped = 50;
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
  StepRows rows_;
  Outcome out_;
};

}  // namespace

RankState::RankState(const Session& s, const Buffers& b, Team t, int r, const Generator& g)
    : session(s), buffers(b), team(t), rank(r), generator(g) {
  if (s.train.reader) train = std::make_unique<Ahead>(s.train, *s.batches, s.who, r);
  if (s.test && s.test->reader) test = std::make_unique<Ahead>(*s.test, *s.test_batches, s.who, r);
}

Outcome train_worker(RankState& rank, int worker, Reporter* reporter, StageClock* clock,
                     Trace* trace) {
  return Worker(rank, worker, reporter, clock, trace).run();
}

}  // namespace dpt
