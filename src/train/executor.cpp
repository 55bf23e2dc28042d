#include "train/executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/fail.h"
#include "comm/tree.h"
#include "graph/operator.h"
#include "train/cuts.h"

namespace dpt {
namespace {

size_t most_activation_bytes(const Session& s) {
  size_t most = 64;
  for (const auto* programs : {&s.programs, &s.test_programs})
    for (const auto& [rows, p] : *programs) most = std::max(most, p.activation_bytes);
  return most;
}

// Not a multiple of a page: arenas of several workers would compete for the same sets of a cache.
size_t arena_stride(const Session& s) {
  return (most_activation_bytes(s) + 4095) / 4096 * 4096 + 1088;
}

StageClock::Kind kind_of(const Stage& stage) {
  if (stage.who != Stage::Who::workers) return StageClock::compute;
  const bool updates = std::ranges::count(stage.actions, Action::update) > 0;
  return updates ? StageClock::update : StageClock::exchange;
}

bool by_group(const Session& s) {
  return s.plan.splits_shards() || s.test_cuts > 0 || s.layout.stored < s.layout.trainable;
}

}  // namespace

size_t Arenas::bytes(const Session& s) {
  const size_t count = by_group(s) ? s.groups.size() : static_cast<size_t>(s.who.total_workers());
  return count * arena_stride(s);
}

Arenas::Arenas(const Session& s, std::byte* memory) {
  for (size_t g = 0; g < s.groups.size(); ++g) {
    const int owner = s.who.owner(static_cast<int>(s.groups[g].begin));
    base_.push_back(memory + (by_group(s) ? g : static_cast<size_t>(owner)) * arena_stride(s));
  }
}

Executor::Executor(const Session& session, const Buffers& buffers, Team team, int worker,
                   Generator* masks, const Samples& samples, StageClock* clock)
    : session_(session),
      buffers_(buffers),
      arenas_(session, buffers.activations()),
      team_(team),
      worker_(worker),
      masks_(masks),
      samples_(samples),
      clock_(clock),
      bindings_(session.groups.size() * 3),
      state_names_(
          session.optimizer->states(session.spec.optimizer.settings, session.cycles_momentum())),
      sums_(static_cast<size_t>(session.who.shards)),
      sum_parts_(sums_.size()) {
  for (int g = 0; g < static_cast<int>(session_.groups.size()); ++g) {
    const int first = static_cast<int>(session_.groups[static_cast<size_t>(g)].begin);
    if (session_.who.owner(first) == worker_) own_.push_back(g);
    if (session_.who.loss_owner(first) == worker_) own_loss_.push_back(g);
  }
  for (int s = 0; s < session_.who.shards; ++s) gradients_.push_back(buffers_.gradient(s));
  meets_at_cuts_ = session_.who.replicas_meet(session_.spec.sync_batch_norm);
  const Program& any = session_.programs.begin()->second;
  share_ = share_update(any, session_.layout, session_.global_batch,
                        session_.who.total_workers())[static_cast<size_t>(worker_)];
  rows_.resize(tile_elements(share_));
  with_rows_.reserve(session_.groups.size());
  const bool accumulates = session_.batches->accumulate() > 1;
  int64_t most = 0;  // shards of a group
  for (const Rows& group : session_.groups) most = std::max(most, group.count());
  if (accumulates) more_.resize(buffers_.sizes().stored * static_cast<size_t>(most));
  cut_sums_.resize(buffers_.sizes().sums / sizeof(double) * sums_.size());
  for (int g = 0; g < static_cast<int>(session_.groups.size()); ++g) {
    bind(g, kTrain, session_.programs);
    if (accumulates) bind(g, kTrainMore, session_.programs);
    bind(g, kTest, session_.test_programs);
  }
}

void Executor::bind(int group, int what, const std::map<GroupRows, Program>& programs) {
  std::vector<Part> parts;
  const Rows shards = session_.groups[static_cast<size_t>(group)];
  const int first = static_cast<int>(shards.begin);
  const bool owner = session_.who.owner(first) == worker_;
  if (owner) parts = {Part::prologue, Part::forward, Part::backward};
  // In a test every owner computes its own loss.
  if (what == kTest ? owner : session_.who.loss_owner(first) == worker_)
    parts.push_back(Part::loss);
  if (what == kTrain && !rows_.empty()) parts.push_back(Part::update);
  if (parts.empty()) return;
  const bool more = what == kTrainMore;
  const Binding::Memory memory{
      reinterpret_cast<std::byte*>(buffers_.weights()),
      reinterpret_cast<std::byte*>(more ? more_.data() : buffers_.gradient(first)),
      arenas_.of(group),
      (more ? buffers_.sizes().stored : buffers_.gradient_stride()) * sizeof(float),
      buffers_.sums(first),
      buffers_.sum_stride()};
  for (const auto& [rows, program] : programs)
    if (std::ssize(rows.shards) == shards.count())
      bindings_[static_cast<size_t>(group * 3 + what)].push_back(
          std::make_unique<Binding>(program, memory, parts));
}

Binding* Executor::binding(int group, const Micro& micro, int what) {
  const Rows shards = session_.groups[static_cast<size_t>(group)];
  const auto rows = std::span(micro).subspan(static_cast<size_t>(shards.begin),
                                             static_cast<size_t>(shards.count()));
  const auto count = [](const ShardRows& s) { return s.rows.count(); };
  if (std::ranges::all_of(
          rows, [](int64_t n) { return n == 0; }, count))
    return nullptr;
  const int64_t largest = count(std::ranges::max(micro, {}, count));
  for (const auto& bound : bindings_[static_cast<size_t>(group * 3 + what)])
    if (const GroupRows& have = bound->program().rows;
        have.largest == largest && std::ranges::equal(have.shards, rows, {}, {}, count))
      return bound.get();
  fail(Fault::failed, "no program for the rows of shard {}", shards.begin);
}

void Executor::feed_inputs(const Feeder& feeder, std::span<const uint32_t> rows, uint64_t epoch,
                           const std::byte* staged, Binding& b) const {
  if (feeder.input().dtype == DType::i32)
    feeder.inputs(rows, reinterpret_cast<int32_t*>(b.input()));
  else
    feeder.inputs(rows, reinterpret_cast<float*>(b.input()),
                  {static_cast<uint64_t>(session_.spec.seed), epoch}, staged);
}

void Executor::feed_targets(const Feeder& feeder, std::span<const uint32_t> rows, Binding& b) {
  if (feeder.target().dtype == DType::i32)
    feeder.targets(rows, reinterpret_cast<int32_t*>(b.target()));
  else
    feeder.targets(rows, reinterpret_cast<float*>(b.target()));
}

StepResult Executor::step(const StepInput& input) {
  result_ = {};
  summed_ = false;
  clip_scale_ = 1;
  divisor_ = natural_divisor(input.rows->samples);
  const int micro = static_cast<int>(input.rows->micro.size());
  for (const Stage& s : session_.plan.prologue) {
    const int last = s.who == Stage::Who::shards ? micro - 1 : 0;
    for (int m = 0; m <= last; ++m) pass(s, m, input, s.meet && m == last);
  }
  // The sums of a single cut are still read when the next micro-batch begins.
  const bool cut = micro > 1 && meets_at_cuts_ && session_.plan.cuts() == 1;
  for (int m = 0; m < micro; ++m)
    for (const Stage& s : session_.plan.micro) pass(s, m, input, s.meet || cut);
  for (const Stage& s : session_.plan.update) pass(s, 0, input, s.meet);
  if (clock_) clock_->step_ends(input.rows->samples);
  return result_;
}

void Executor::pass(const Stage& stage, int micro, const StepInput& input, bool meets) {
  run(stage, micro, input);
  if (clock_) clock_->mark(kind_of(stage));
  if (meets) meet();
}

void Executor::meet() {
  team_.meet(worker_);
  if (clock_) clock_->mark(StageClock::waiting);
}

void Executor::run(const Stage& stage, int micro, const StepInput& input) {
  switch (stage.who) {
    case Stage::Who::shards:
      if (session_.plan.cuts() > 0) return run_cut(stage, micro, input);
      for (int s : own_)
        for (Action a : stage.actions) act(a, s, micro, input);
      break;
    case Stage::Who::loss_device:
      for (int s : own_loss_)
        for (Action a : stage.actions) act(a, s, micro, input);
      break;
    case Stage::Who::first:
      if (masks_) draw_masks(micro, input);
      break;
    case Stage::Who::workers:
      for (Action a : stage.actions)
        if (result_.finite) act(a, 0, micro, input);
      break;
  }
}

void Executor::run_cut(const Stage& stage, int micro, const StepInput& input) {
  for (Action a : stage.actions) {
    const int cuts = session_.plan.cuts(a);
    if (cuts > 0) {
      const Part part = a == Action::forward ? Part::forward : Part::backward;
      run_in_pieces(cuts, part, input.rows->micro[static_cast<size_t>(micro)], which(micro),
                    [&](int, Binding& b, int piece) { b.run(part, piece); });
    }
    for (int g : own_)
      if (cuts == 0)
        act(a, g, micro, input);
      else if (a == Action::backward)
        finish_gradients(g, micro, input);
  }
}

void Executor::run_part(Part part, int group, int micro, const StepInput& input) {
  if (Binding* b = binding(group, input.rows->micro[static_cast<size_t>(micro)], which(micro)))
    b->run(part);
}

void Executor::act(Action action, int group, int micro, const StepInput& input) {
  switch (action) {
    case Action::feed:
      feed(group, input, micro, which(micro), samples_.train);
      return;
    case Action::forward:
      return run_part(Part::forward, group, micro, input);
    case Action::feed_targets:  // with the prologue
    case Action::gather:        // one memory: nothing to copy
    case Action::scatter:
    case Action::draw_masks:
      return;
    case Action::prologue:
      return prologue(group, micro, input);
    case Action::loss:
      return loss(group, micro, input);
    case Action::backward:
      run_part(Part::backward, group, micro, input);
      return finish_gradients(group, micro, input);
    case Action::sum_divisor:
      return sum_divisor(input);
    case Action::sum_loss:
      return sum_loss(input);
    case Action::sum_squares:
      return sum_squares();
    case Action::update:
      return update(input);
  }
}

// A group's shards follow each other in the order of samples.
std::span<const uint32_t> Executor::samples(int group, const Micro& micro,
                                            std::span<const uint32_t> order) const {
  const Rows shards = session_.groups[static_cast<size_t>(group)];
  const int64_t begin = micro[static_cast<size_t>(shards.begin)].rows.begin;
  const int64_t end = micro[static_cast<size_t>(shards.end - 1)].rows.end;
  return order.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

Binding* Executor::feed(int group, const StepInput& input, int micro, int what, Ahead* ahead) {
  const Micro& rows = input.rows->micro[static_cast<size_t>(micro)];
  Binding* b = binding(group, rows, what);
  if (!b) return nullptr;
  const Rows shards = session_.groups[static_cast<size_t>(group)];
  b->context = {static_cast<uint64_t>(session_.spec.seed), input.number,
                rows[static_cast<size_t>(shards.begin)].first_sample};
  b->first = b->context.first_sample == 0;
  const auto order = samples(group, rows, input.order);
  const Taken taken(ahead, input.batch, micro, shards, team_);
  feed_inputs(*session_.feeder, order, input.epoch, taken.bytes(), *b);
  feed_targets(*session_.feeder, order, *b);
  return b;
}

void Executor::prologue(int group, int micro, const StepInput& input) {
  const Micro& rows = input.rows->micro[static_cast<size_t>(micro)];
  const Rows shards = session_.groups[static_cast<size_t>(group)];
  Binding* b = binding(group, rows, kTrain);
  if (b) {
    feed_targets(*session_.feeder, samples(group, rows, input.order), *b);
    b->run(Part::prologue);
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
  const Rows shards = session_.groups[static_cast<size_t>(group)];
  Binding* b = binding(group, rows, which(micro));
  if (b) {
    b->set_divisor(divisor_);
    b->set_scale(input.scale);
    b->run(Part::loss);
  }
  const bool known = session_.divisor == Divisor::targets;  // the prologue has set the weight
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    ShardResult& result = buffers_.result(input.number, static_cast<int>(s));
    const int64_t n = rows[static_cast<size_t>(s)].rows.count();
    if (micro == 0) result.loss = 0;
    // A weight that is known is not written again: others may still be summing them.
    if (!known) result.weight = (micro == 0 ? 0 : result.weight) + natural_divisor(n);
    if (n > 0) result.loss += b->loss(static_cast<size_t>(s - shards.begin));
  }
}

// What backward leaves to do: gradients of empty shards are 0, those of later micro-batches added.
void Executor::finish_gradients(int group, int micro, const StepInput& input) const {
  const Micro& rows = input.rows->micro[static_cast<size_t>(micro)];
  const Rows shards = session_.groups[static_cast<size_t>(group)];
  const size_t elements = buffers_.sizes().stored;
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    float* gradient = buffers_.gradient(static_cast<int>(s));
    if (rows[static_cast<size_t>(s)].rows.count() == 0) {
      if (micro == 0) std::memset(gradient, 0, elements * sizeof(float));
    } else if (micro > 0) {
      const float* more = more_.data() + static_cast<size_t>(s - shards.begin) * elements;
      for (size_t i = 0; i < elements; ++i) gradient[i] += more[i];
    }
  }
}

// As torch draws them: layer by layer, each for the whole batch.
void Executor::draw_masks(int micro, const StepInput& input) {
  const std::vector<ShardRows>& shards = input.rows->micro[static_cast<size_t>(micro)];
  for (ValueId v = 0; v < static_cast<ValueId>(session_.graph.values.size()); ++v) {
    if (session_.graph[v].role != Role::mask) continue;
    for (size_t g = 0; g < session_.groups.size(); ++g) {
      const GroupRows rows = group_rows(shards, session_.groups[g]);
      if (rows.total() == 0) continue;
      const Program& program = session_.programs.at(rows);
      const size_t offset = program.place[static_cast<size_t>(v)].offset;
      const double keep = program.graph[v].probability;
      auto* mask = reinterpret_cast<float*>(arenas_.of(static_cast<int>(g)) + offset);
      for (int64_t i = 0; i < program.graph[v].desc.shape.elements(); ++i)
        mask[i] = masks_->bernoulli(keep) ? 1.0F : 0.0F;
    }
  }
}

double Executor::natural_divisor(int64_t samples) const {
  // Of targets the prologue finds it.
  if (session_.divisor == Divisor::one || session_.divisor == Divisor::targets) return 1;
  return static_cast<double>(samples * session_.terms_per_sample);
}

// In the fixed tree, so that every worker of every mode gets the same bits.
double Executor::sum(double ShardResult::*what, uint64_t step, Rows shards) {
  const auto count = static_cast<size_t>(shards.count());
  for (size_t i = 0; i < count; ++i) {
    sums_[i] = buffers_.result(step, static_cast<int>(shards.begin) + static_cast<int>(i)).*what;
    sum_parts_[i] = &sums_[i];
  }
  sum_tree(std::span<double* const>(sum_parts_.data(), count), 0, 1);
  return count > 0 ? sums_[0] : 0;
}

void Executor::sum_divisor(const StepInput& input) {
  divisor_ = sum(&ShardResult::weight, input.number, {0, session_.who.shards});
}

void Executor::sum_loss(const StepInput& input) {
  const Rows first_rank = session_.who.shards_of_rank(0);
  result_.loss = sum(&ShardResult::loss, input.number, {0, session_.who.shards});
  result_.weight = divisor_;
  result_.finite = std::isfinite(result_.loss);
  result_.overflowed = session_.scaler.on && !result_.finite;
  // Here, between two meetings, every worker reads the same.
  result_.stop = team_.agreed_stop();
  result_.rank0_loss = result_.loss;
  if (session_.who.ranks > 1 && session_.divisor != Divisor::one)
    result_.rank0_loss = sum(&ShardResult::loss, input.number, first_rank) * divisor_ /
                         sum(&ShardResult::weight, input.number, first_rank);
}

}  // namespace dpt
