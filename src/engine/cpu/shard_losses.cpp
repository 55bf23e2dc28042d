#include "engine/cpu/shard_losses.h"

#include <span>

#include "comm/tree.h"

namespace dpt {

ShardLosses::ShardLosses(const CpuWorker& worker, const BindingTable& bindings,
                         const CpuBatchInput& input)
    : worker_(worker),
      bindings_(bindings),
      input_(input),
      values_(static_cast<size_t>(worker.session.devices.topology.shards)),
      parts_(values_.size()) {}

int64_t ShardLosses::samples_of_update(const StepRows& rows) const {
  if (!worker_.session.devices.topology.replicas_own_weights()) return rows.samples;
  const Rows summed = worker_.summed_shards;
  int64_t out = 0;
  for (const auto& micro : rows.micro)
    for (int64_t s = summed.begin; s < summed.end; ++s)
      out += micro[static_cast<size_t>(s)].rows.count();
  return out;
}

void ShardLosses::prologue(int group, size_t micro, const StepInput& input) const {
  if (!worker_.stages.has_last()) return;
  const MicroBatch& rows = input.rows->micro[micro];
  const Rows shards = worker_.shards(group);
  Binding* b = bindings_.find(group, rows, ProgramKind::train);
  if (b) {
    input_.targets(*b, group, input, micro);
    b->run(Part::prologue, worker_.stages.last());
  }
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    ShardResult& result = worker_.buffers.result(input.number, static_cast<int>(s));
    if (micro == 0) result = {};
    if (b && rows[static_cast<size_t>(s)].rows.count() > 0)
      result.weight += b->target_weight(static_cast<size_t>(s - shards.begin));
  }
}

void ShardLosses::run(int group, size_t micro, const StepInput& input) const {
  const MicroBatch& rows = input.rows->micro[micro];
  const Rows shards = worker_.shards(group);
  Binding* b = bindings_.find(group, rows, program_kind(worker_.session, micro), micro);
  if (b) {
    b->set_divisor(divisor_);
    b->set_scale(input.scale);
    b->run(Part::loss, worker_.stages.last());
  }
  // Then the prologue has set the weight.
  const bool known = worker_.session.model.divisor == Divisor::targets;
  for (int64_t s = shards.begin; s < shards.end; ++s) {
    ShardResult& result = worker_.buffers.result(input.number, static_cast<int>(s));
    const int64_t n = rows[static_cast<size_t>(s)].rows.count();
    if (micro == 0) result.loss = 0;
    // Do not write a known weight again: other workers may be reading it.
    if (!known)
      result.weight = (micro == 0 ? 0 : result.weight) + natural_divisor(worker_.session.model, n);
    if (b && n > 0) result.loss += b->loss(static_cast<size_t>(s - shards.begin));
  }
}

double ShardLosses::sum(double ShardResult::*field, uint64_t step, Rows shards) {
  const auto count = static_cast<size_t>(shards.count());
  for (size_t i = 0; i < count; ++i) {
    const int shard = static_cast<int>(shards.begin) + static_cast<int>(i);
    const double& from = worker_.buffers.result(step, shard).*field;
    if (memory_watch) memory_watch->read(&from, sizeof(double));
    values_[i] = from;
    parts_[i] = &values_[i];
  }
  sum_tree(std::span<double* const>(parts_.data(), count), 0, 1);
  return count > 0 ? values_[0] : 0;
}

void ShardLosses::sum_divisor(uint64_t step) {
  divisor_ = sum(&ShardResult::weight, step, worker_.summed_shards);
}

StepSums ShardLosses::sums_of_replicas(uint64_t step) {
  const Topology& topology = worker_.session.devices.topology;
  const bool one = worker_.session.model.divisor == Divisor::one;
  double terms = 0, divisor = 0, terms0 = 0, divisor0 = 0;
  for (int r = 0; r < topology.replicas(); ++r) {
    const Rows shards = topology.shards_of_rank(r);
    const double loss = sum(&ShardResult::loss, step, shards);
    const double own = one ? 1 : sum(&ShardResult::weight, step, shards);
    if (own == 0) continue;  // no samples, or all targets are ignored: the loss is 0 or nan
    terms += loss * own;
    divisor += own;
    if (r == 0) terms0 = terms, divisor0 = divisor;
  }
  if (one) return {.loss = terms};
  return {.loss = terms / divisor,
          .divisor = divisor,
          .rank0_loss = terms0 / divisor,
          .rank0_divisor = divisor0};
}

StepSums ShardLosses::sums(uint64_t step) {
  const Topology& topology = worker_.session.devices.topology;
  if (topology.replicas_own_weights()) return sums_of_replicas(step);
  StepSums out{.loss = sum(&ShardResult::loss, step, {0, topology.shards}), .divisor = divisor_};
  if (reports_rank0_loss(worker_.session.settings.spec, worker_.session.devices,
                         worker_.session.model)) {
    const Rows rank0 = topology.shards_of_rank(0);
    out.rank0_loss = sum(&ShardResult::loss, step, rank0);
    out.rank0_divisor = sum(&ShardResult::weight, step, rank0);
  }
  return out;
}

}  // namespace dpt
