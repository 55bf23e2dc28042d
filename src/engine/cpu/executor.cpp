#include "engine/cpu/executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/fail.h"
#include "comm/tree.h"
#include "engine/cpu/sync_points.h"
#include "graph/operator.h"
#include "session/later_gradients.h"

namespace dpt {
namespace {

PlanStepClock::Kind kind_of(std::span<const PlanStep> run) {
  if (run[0].actor != PlanStep::Actor::workers) return PlanStepClock::compute;
  const bool updates = std::ranges::count(run, PlanOp::update, &PlanStep::op) > 0;
  return updates ? PlanStepClock::update : PlanStepClock::exchange;
}

std::vector<std::span<const PlanStep>> runs_of(const Plan::Steps& steps) {
  std::vector<std::span<const PlanStep>> out;
  each_run(steps, [&](std::span<const PlanStep> run) { out.push_back(run); });
  return out;
}

}  // namespace

Executor::Executor(const Session& session, const Buffers& buffers, Team team, int worker,
                   Generator* masks, const Samples& samples, PlanStepClock* clock, Trace* trace)
    : session_(session),
      buffers_(buffers),
      arenas_(session, buffers.activations()),
      team_(team),
      worker_(worker),
      device_(session.topology.device_of(worker)),
      masks_(masks),
      samples_(samples),
      clock_(clock),
      trace_(trace),
      slot_count_(session.slot_count()),
      bindings_(session.shard_groups.size() * kKinds * static_cast<size_t>(slot_count_)),
      state_names_(
          session.optimizer->states(session.spec.optimizer.settings, session.cycles_momentum())),
      sums_(static_cast<size_t>(session.topology.shards)),
      sum_parts_(sums_.size()),
      measure_layout_(session),
      prologue_(runs_of(session.plan.prologue)),
      micro_runs_(runs_of(session.plan.micro)),
      update_runs_(runs_of(session.plan.update)) {
  if (memory_watch) memory_watch->opened(session, buffers, worker);
  for (int g = 0; g < static_cast<int>(session_.shard_groups.size()); ++g) {
    const int first = static_cast<int>(session_.shard_groups[static_cast<size_t>(g)].begin);
    if (session_.topology.owner(first, device_) == worker_) own_.push_back(g);
    if (session_.topology.loss_owner(first) == worker_) own_loss_.push_back(g);
  }
  for (int s = 0; s < session_.topology.shards; ++s) gradients_.push_back(buffers_.gradient(s));
  waits_at_sync_points_ = session_.topology.sync_needs_barrier(session_.plan.sync_across_replicas);
  if (session_.topology.devices_per_replica > 1) partners_ = partners_at_sync_points();
  posted_.resize(static_cast<size_t>(session_.topology.devices_per_replica));
  const Program& any = session_.programs.begin()->second;
  share_ = partition_update(any, session_.layout, session_.global_batch,
                            session_.topology)[static_cast<size_t>(worker_)];
  for (int stage = 0; stage <= last_stage(); ++stage)
    stage_stored_.push_back(
        stored_ranges(any.graph, session_.layout, [&](int s) { return s == stage; }));
  rows_.resize(tile_elements(share_));
  if (session.exchange.compress) compressed_.emplace(*session.exchange.compress, buffers_);
  if (session.exchange.shard_states)
    own_states_.emplace(
        share_, session.states(),
        static_cast<float>(session.optimizer->initial_state(session.spec.optimizer.settings)));
  if (own_states_ && session.spec.ema)  // averages start from the weights
    for (size_t p = 0; p < share_.size(); ++p)
      std::copy(buffers_.weights() + share_[p].begin, buffers_.weights() + share_[p].end,
                own_states_->state(session.average_state(), p) + share_[p].begin);
  with_rows_.reserve(session_.shard_groups.size());
  const bool accumulates = session_.batches->accumulate() > 1;
  size_t later = 0;
  for (const auto* programs : {&session_.programs, &session_.last_programs})
    for (const auto& [rows, program] : *programs)
      later = std::max(later, later_bytes(program, [&](int s) { return has_stage(s); }));
  if (accumulates) later_.resize(later);
  sync_sums_.resize(buffers_.sizes().sums / sizeof(double) * sums_.size());
  for (int g = 0; g < static_cast<int>(session_.shard_groups.size()); ++g) {
    bind(g, kTrain, 0, session_.programs);
    for (int c = 0; c < slot_count_ && accumulates; ++c) bind(g, kTrainMore, c, session_.programs);
    if (accumulates) bind(g, kTrainLast, 0, session_.last_programs);
    for (int c = 0; c < slot_count_; ++c) bind(g, kTest, c, session_.test_programs);
  }
}

// The workers with whom this one sums at sync points: those with the same stages, in its replica
// or, with sync_batch_norm, in all replicas.
std::vector<int> Executor::partners_at_sync_points() const {
  std::vector<int> out;
  for (int w = 0; w < session_.topology.total_workers(); ++w)
    if (session_.topology.device_of(w) == device_ &&
        (session_.spec.sync_batch_norm ||
         session_.topology.replica(w) == session_.topology.replica(worker_)))
      out.push_back(w);
  return out;
}

void Executor::bind(int group, int kind, int chunk,
                    const std::map<ShardGroupRows, Program>& programs) {
  std::vector<Part> parts;
  const Rows shards = session_.shard_groups[static_cast<size_t>(group)];
  const int first = static_cast<int>(shards.begin);
  const bool owner = session_.topology.owner(first, device_) == worker_;
  if (owner) parts = {Part::prologue, Part::forward, Part::backward};
  // In an evaluation every worker computes the loss of its own shards.
  const bool own_loss = kind == kTest || session_.topology.loss_device < 0;
  if (own_loss ? owner : session_.topology.loss_owner(first) == worker_)
    parts.push_back(Part::loss);
  if (kind == kTrain && !rows_.empty()) parts.push_back(Part::update);
  if (parts.empty()) return;
  const bool last = kind == kTrainLast, more = kind == kTrainMore || last;
  Binding::BufferPointers memory{
      .weights = reinterpret_cast<std::byte*>(buffers_.weights()),
      .gradients = reinterpret_cast<std::byte*>(buffers_.gradient(first)),
      .gradient_stride = buffers_.gradient_stride() * sizeof(float),
      .later = more ? later_.data() : nullptr,
      .sums = buffers_.sums(first),
      .sum_stride = buffers_.sum_stride()};
  std::vector<int> stages;
  for (int s = 0; s <= last_stage(); ++s) {
    memory.activations.push_back(arenas_.kept(group, s, chunk, last));
    memory.scratch.push_back(arenas_.scratch(group, s));
    if (has_stage(s)) stages.push_back(s);
  }
  BySize& bound = bindings_[static_cast<size_t>((group * kKinds + kind) * slot_count_ + chunk)];
  for (const auto& [rows, program] : programs)
    if (std::ssize(rows.shards) == shards.count()) {
      bound.push_back(std::make_unique<Binding>(program, memory, parts, stages));
      bound.back()->clock = clock_;
    }
}

Binding* Executor::binding(int group, const Micro& micro, int kind, int chunk) {
  const Rows shards = session_.shard_groups[static_cast<size_t>(group)];
  const auto rows = std::span(micro).subspan(static_cast<size_t>(shards.begin),
                                             static_cast<size_t>(shards.count()));
  const auto count = [](const ShardRows& s) { return s.rows.count(); };
  if (std::ranges::all_of(
          rows, [](int64_t n) { return n == 0; }, count))
    return nullptr;
  const int64_t largest = count(std::ranges::max(micro, {}, count));
  const int slot = kind == kTrain || kind == kTrainLast ? 0 : chunk % slot_count_;
  for (const auto& bound :
       bindings_[static_cast<size_t>((group * kKinds + kind) * slot_count_ + slot)])
    if (const ShardGroupRows& have = bound->program().rows;
        have.largest == largest && std::ranges::equal(have.shards, rows, {}, {}, count))
      return bound.get();
  fail(Fault::failed, "no program for the rows of shard {}", shards.begin);
}

StepResult Executor::step(const StepInput& input) {
  result_ = {};
  step_ = input.number;
  if (worker_ == 0) wait_clock_.begin_step(input.number);
  summed_ = false;
  clip_scale_ = 1;
  divisor_ = natural_divisor(input.rows->samples);
  const int micro = static_cast<int>(input.rows->micro.size());
  for (const StepRun run : prologue_) {
    const int last = run[0].actor == PlanStep::Actor::shards ? micro - 1 : 0;
    for (int m = 0; m <= last; ++m) pass(run, m, input);
  }
  if (!session_.plan.stages.empty()) run_pipeline(input);
  for (int m = 0; m < micro; ++m)
    for (const StepRun run : micro_runs_) pass(run, m, input);
  for (const StepRun run : update_runs_) pass(run, 0, input);
  if (clock_) clock_->step_ends(input.rows->samples);
  return result_;
}

bool Executor::happens(const PlanStep& s, int micro, const StepInput& input) {
  switch (s.when) {
    case PlanStep::When::between:
      return micro + 1 < std::ssize(input.rows->micro);
    case PlanStep::When::measured:
      return input.measured;
    default:
      return true;
  }
}

void Executor::pass(StepRun run, int micro, const StepInput& input) {
  if (run[0].op == PlanOp::barrier) {
    for (const PlanStep& s : run)
      if (happens(s, micro, input)) barrier();
    return;
  }
  execute(run, micro, input);
  if (clock_) clock_->mark(kind_of(run));
}

void Executor::barrier() {
  wait_clock_.record(WaitClock::barriers,
                     [&] { traced({.op = PlanOp::barrier}, 0, [&] { team_.barrier(worker_); }); });
  if (clock_) clock_->mark(PlanStepClock::waiting);
}

void Executor::execute(StepRun run, int micro, const StepInput& input) {
  switch (run[0].actor) {
    case PlanStep::Actor::shards:
      if (session_.plan.sync_points() > 0) return run_with_sync_points(run, micro, input);
      for (const int g : own_)
        for (const PlanStep& s : run) act(s, g, micro, input);
      return;
    case PlanStep::Actor::loss_device:
      for (const int g : own_loss_)
        for (const PlanStep& s : run) act(s, g, micro, input);
      return;
    case PlanStep::Actor::first:
      if (masks_) draw_masks(micro, input);
      return;
    case PlanStep::Actor::workers:
      for (const PlanStep& s : run)
        if (result_.finite && happens(s, micro, input)) act(s, 0, micro, input);
      return;
    case PlanStep::Actor::gpus:
    case PlanStep::Actor::exchange:
    case PlanStep::Actor::hosts:
      fail(Fault::failed, "a step of GPUs in a plan for CPUs");
  }
}

void Executor::run_with_sync_points(StepRun run, int micro, const StepInput& input) {
  for (const PlanStep& s : run) {
    const int sync_points = session_.plan.sync_points(s);
    if (memory_watch) memory_watch->begin(worker_, s);
    if (sync_points > 0)
      run_in_pieces(sync_points, s.part, input.rows->micro[static_cast<size_t>(micro)],
                    program_kind(micro),
                    [](int, Binding& b, const Binding::Piece& piece) { b.run(piece); });
    for (const int g : own_)
      if (sync_points == 0)
        act(s, g, micro, input);
      else if (s.part == Part::backward)
        finish_gradients(g, micro, input);
  }
}

void Executor::run_part(Part part, int group, int micro, const StepInput& input) {
  if (Binding* b =
          binding(group, input.rows->micro[static_cast<size_t>(micro)], program_kind(micro)))
    b->run(part);
}

void Executor::act(const PlanStep& s, int group, int micro, const StepInput& input) {
  traced(s, micro, [&] { do_step(s, group, micro, input); });
}

void Executor::do_step(const PlanStep& s, int group, int micro, const StepInput& input) {
  switch (s.op) {
    case PlanOp::load:
      load(group, input, micro, program_kind(micro), samples_.train);
      return;
    case PlanOp::run:
      return run_of_shards(s.part, group, micro, input);
    case PlanOp::compress:
      return compress(group);
    case PlanOp::sum:
      if (s.quantity == Quantity::divisor) return sum_divisor(input);
      return s.quantity == Quantity::loss ? sum_loss(input) : sum_squares(input);
    case PlanOp::decide:
      return decide(input);
    case PlanOp::update:
      return update(input);
    default:  // load_targets: done by the prologue; gather, scatter: CPUs share memory
      return;
  }
}

void Executor::run_of_shards(Part part, int group, int micro, const StepInput& input) {
  if (part == Part::prologue) return prologue(group, micro, input);
  if (part == Part::loss) return loss(group, micro, input);
  run_part(part, group, micro, input);
  if (part == Part::backward) finish_gradients(group, micro, input);
}

void Executor::prologue(int group, int micro, const StepInput& input) {
  if (!has_stage(last_stage())) return;
  const Micro& rows = input.rows->micro[static_cast<size_t>(micro)];
  const Rows shards = session_.shard_groups[static_cast<size_t>(group)];
  Binding* b = binding(group, rows, kTrain);
  if (b) {
    load_targets(*session_.loader, samples(group, rows, input.order), *b);
    b->run(Part::prologue, last_stage());
  }
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    ShardResult& result = buffers_.result(input.number, static_cast<int>(s));
    if (micro == 0) result = {};
    if (rows[static_cast<size_t>(s)].rows.count() > 0)
      result.weight += b->target_weight(static_cast<size_t>(s - shards.begin));
  }
}

void Executor::loss(int group, int micro, const StepInput& input) {
  const Micro& rows = input.rows->micro[static_cast<size_t>(micro)];
  const Rows shards = session_.shard_groups[static_cast<size_t>(group)];
  Binding* b = binding(group, rows, program_kind(micro), micro);
  if (b) {
    b->set_divisor(divisor_);
    b->set_scale(input.scale);
    b->run(Part::loss, last_stage());
  }
  const bool known = session_.divisor == Divisor::targets;  // the prologue has set the weight
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    ShardResult& result = buffers_.result(input.number, static_cast<int>(s));
    const int64_t n = rows[static_cast<size_t>(s)].rows.count();
    if (micro == 0) result.loss = 0;
    // Do not write a known weight again: other workers may be reading it.
    if (!known) result.weight = (micro == 0 ? 0 : result.weight) + natural_divisor(n);
    if (n > 0) result.loss += b->loss(static_cast<size_t>(s - shards.begin));
  }
}

// Zeroes the stored gradients of shards without samples, which the backward pass did not write.
void Executor::finish_gradients(int group, int micro, const StepInput& input) const {
  for (const auto& ranges : stage_stored_)
    for (const UpdateRange& range : ranges) finish_gradients(group, micro, input, range);
}

void Executor::finish_gradients(int group, int micro, const StepInput& input,
                                UpdateRange range) const {
  if (micro > 0) return;
  const Micro& rows = input.rows->micro[0];
  const Rows shards = session_.shard_groups[static_cast<size_t>(group)];
  for (int64_t s = shards.begin; s < shards.end; ++s)
    if (rows[static_cast<size_t>(s)].rows.count() == 0)
      std::memset(buffers_.gradient(static_cast<int>(s)) + range.begin, 0,
                  range.count() * sizeof(float));
}

double Executor::natural_divisor(int64_t samples) const {
  // For Divisor::targets the prologue computes it.
  if (session_.divisor == Divisor::one || session_.divisor == Divisor::targets) return 1;
  return static_cast<double>(samples * session_.terms_per_sample);
}

// Sums in the fixed tree order, so that every worker gets the same bits in every mode.
double Executor::sum(double ShardResult::*field, uint64_t step, Rows shards) {
  const auto count = static_cast<size_t>(shards.count());
  for (size_t i = 0; i < count; ++i) {
    const double& from =
        buffers_.result(step, static_cast<int>(shards.begin) + static_cast<int>(i)).*field;
    if (memory_watch) memory_watch->read(&from, sizeof(double));
    sums_[i] = from;
    sum_parts_[i] = &sums_[i];
  }
  sum_tree(std::span<double* const>(sum_parts_.data(), count), 0, 1);
  return count > 0 ? sums_[0] : 0;
}

void Executor::sum_divisor(const StepInput& input) {
  divisor_ = sum(&ShardResult::weight, input.number, {0, session_.topology.shards});
}

void Executor::sum_loss(const StepInput& input) {
  const Rows first_rank = session_.topology.shards_of_rank(0);
  result_.loss = sum(&ShardResult::loss, input.number, {0, session_.topology.shards});
  result_.weight = divisor_;
  result_.empty = session_.takes_empty_steps && divisor_ == 0;
  result_.finite = result_.empty || std::isfinite(result_.loss);
  result_.overflowed = session_.scaler.on && !result_.finite;
  // Between two barriers, so every worker reads the same number.
  result_.stop = team_.agreed_stop();
  result_.rank0_loss = result_.loss;
  if (session_.topology.ranks > 1 && session_.divisor != Divisor::one)
    result_.rank0_loss = sum(&ShardResult::loss, input.number, first_rank) * divisor_ /
                         sum(&ShardResult::weight, input.number, first_rank);
}

}  // namespace dpt
