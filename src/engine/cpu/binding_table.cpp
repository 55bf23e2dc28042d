#include "engine/cpu/binding_table.h"

#include <algorithm>
#include <span>

#include "base/fail.h"
#include "session/later_gradients.h"

namespace dpt {

BindingTable::BindingTable(const CpuWorker& worker)
    : worker_(worker),
      arenas_(worker.session, worker.buffers.activations()),
      slot_count_(static_cast<size_t>(worker.session.model.slot_count)),
      bindings_(worker.session.model.shard_groups.size() * kProgramKinds * slot_count_) {
  size_t later = 0;
  for (const ProgramKind kind : {ProgramKind::train_more, ProgramKind::train_last})
    for (const auto& [rows, program] : programs_of(worker.session, kind))
      later = std::max(later, later_bytes(program, [&](int s) { return worker.stages.has(s); }));
  later_.resize(later);
  for (int g = 0; g < worker.shard_groups(); ++g)
    for (size_t kind = 0; kind < kProgramKinds; ++kind)
      for (size_t slot = 0; slot < slots_of(ProgramKind(kind), slot_count_); ++slot)
        bind(g, ProgramKind(kind), slot);
}

// What this worker runs of the group's programs.
std::vector<Part> BindingTable::parts(int group, ProgramKind kind) const {
  const Topology& topology = worker_.session.devices.topology;
  const int first = static_cast<int>(worker_.shards(group).begin);
  const bool owner = topology.owner(first, worker_.stages.device()) == worker_.number;
  std::vector<Part> out;
  if (owner) out = {Part::prologue, Part::forward, Part::backward};
  // In an evaluation every worker computes the loss of its own shards.
  const bool own_loss = kind == ProgramKind::test || topology.loss_device < 0;
  if (own_loss ? owner : topology.loss_owner(first) == worker_.number) out.push_back(Part::loss);
  if (kind == ProgramKind::train && worker_.has_fused_gradients() && worker_.sums(group))
    out.push_back(Part::update);
  return out;
}

void BindingTable::bind(int group, ProgramKind kind, size_t slot) {
  const std::vector<Part> run = parts(group, kind);
  if (run.empty()) return;
  const Buffers& buffers = worker_.buffers;
  const Rows shards = worker_.shards(group);
  const int first = static_cast<int>(shards.begin);
  Binding::BufferPointers memory{.weights = reinterpret_cast<std::byte*>(buffers.weights()),
                                 .gradients = reinterpret_cast<std::byte*>(buffers.gradient(first)),
                                 .gradient_stride = buffers.gradient_stride() * sizeof(float),
                                 .later = adds_gradients(kind) ? later_.data() : nullptr,
                                 .sums = buffers.sums(first),
                                 .sum_stride = buffers.sum_stride()};
  for (int s = 0; s <= worker_.stages.last(); ++s) {
    memory.activations.push_back(
        arenas_.kept(group, s, static_cast<int>(slot), kind == ProgramKind::train_last));
    memory.scratch.push_back(arenas_.scratch(group, s));
  }
  const std::vector<int> stages = worker_.stages.own();
  ByRows& bound = bindings_[index(group, kind, slot)];
  for (const auto& [rows, program] : programs_of(worker_.session, kind))
    if (std::ssize(rows.shards) == shards.count()) {
      bound.push_back(std::make_unique<Binding>(program, memory, run, stages, worker_.share));
      bound.back()->clock = worker_.clocks.plan_steps();
    }
}

Binding* BindingTable::find(int group, const MicroBatch& micro, ProgramKind kind,
                            size_t chunk) const {
  const Rows shards = worker_.shards(group);
  const auto rows = std::span(micro).subspan(static_cast<size_t>(shards.begin),
                                             static_cast<size_t>(shards.count()));
  const auto count = [](const ShardRows& s) { return s.rows.count(); };
  if (std::ranges::all_of(
          rows, [](int64_t n) { return n == 0; }, count))
    return nullptr;
  const int64_t largest = count(std::ranges::max(micro, {}, count));
  for (const auto& bound : bindings_[index(group, kind, chunk % slots_of(kind, slot_count_))])
    if (const ShardGroupRows& have = bound->program().rows;
        have.largest == largest && std::ranges::equal(have.shards, rows, {}, {}, count))
      return bound.get();
  fail(Fault::failed, "no program for the rows of shard {}", shards.begin);
}

}  // namespace dpt
