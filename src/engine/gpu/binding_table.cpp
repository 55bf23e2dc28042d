#include "engine/gpu/binding_table.h"

#include <algorithm>

#include "base/fail.h"
#include "base/stderr.h"

namespace dpt {

using cuda::MemoryKind;

namespace {

constexpr Part kTrained[] = {Part::prologue, Part::forward, Part::loss, Part::backward};

std::span<const Part> parts_of(ProgramKind kind) {
  return std::span(kTrained).first(kind == ProgramKind::test ? 3 : 4);
}

size_t most_sums(const CompiledModel& model) {
  size_t most = 64;
  for (const auto* programs : {&model.programs, &model.test_programs})
    for (const auto& [rows, p] : *programs) most = std::max(most, p.sum_bytes);
  return most;
}

}  // namespace

size_t GpuBindingTable::activation_bytes(const CompiledModel& model) {
  size_t most = 64;
  for (const auto* programs : {&model.programs, &model.test_programs})
    for (const auto& [rows, p] : *programs) most = std::max(most, p.arena[0].kept);
  return most;
}

GpuBindingTable::GpuBindingTable(GpuWorker& worker, const GpuUpdate& update, GpuStages* stages)
    : worker_(worker),
      update_(update),
      stages_(stages),
      slot_count_(static_cast<size_t>(worker.session.model.slot_count)),
      activations_(worker.api(), MemoryKind::device,
                   stages ? 64 : activation_bytes(worker.session.model)),
      sums_(worker.api(), MemoryKind::device, most_sums(worker.session.model)) {
  cuda::DeviceContext& context = worker.context;
  context.make_plans([this] { plan_kernels(); });
  for (const ProgramKind kind :
       {ProgramKind::train, ProgramKind::train_more, ProgramKind::train_last, ProgramKind::test})
    bind(kind);
  workspace_ = cuda::DeviceBuffer(worker.api(), MemoryKind::device, context.workspace_bytes());
  context.workspace = workspace_.data();
  if (worker.shard == 0)
    for (const std::string& line : context.not_as_planned())
      print_stderr("not as planned: {}\n", line);
}

// Later micro-batches have the kernels of the first.
void GpuBindingTable::plan_kernels() {
  for (const ProgramKind kind : {ProgramKind::train, ProgramKind::train_last, ProgramKind::test}) {
    const std::vector<int> stages = memory(kind, 0).stages;
    for (const auto& [rows, program] : programs_of(worker_.session, kind))
      GpuBinding::ask_for_plans(program, stages, parts_of(kind));
  }
}

void GpuBindingTable::bind(ProgramKind kind) {
  for (size_t slot = 0; slot < slots_of(kind, slot_count_); ++slot)
    for (const auto& [rows, program] : programs_of(worker_.session, kind))
      bindings_[static_cast<size_t>(kind)].push_back(std::make_unique<GpuBinding>(
          program, memory(kind, slot), worker_.context, parts_of(kind)));
}

GpuBinding::BufferPointers GpuBindingTable::memory(ProgramKind kind, size_t chunk) const {
  GpuBinding::BufferPointers out{.share = &worker_.share,
                                 .weights = update_.weights(),
                                 .gradients = update_.gradients(adds_gradients(kind)),
                                 .activations = {activations_.data()},
                                 .scratch = {nullptr},
                                 .sums = sums_.data()};
  if (!stages_) return out;
  out.activations.clear();
  out.scratch.clear();
  for (int s = 0; s <= worker_.stages.last(); ++s) {
    out.activations.push_back(stages_->kept(s, chunk, kind == ProgramKind::train_last));
    out.scratch.push_back(stages_->scratch(s));
  }
  out.stages = stages_->own();
  out.copy = [stages = stages_](const Copy& way) { return stages->copy(way); };
  return out;
}

GpuBinding& GpuBindingTable::at(const MicroBatch& micro, ProgramKind kind, size_t chunk) const {
  const auto& all = bindings_[static_cast<size_t>(kind)];
  const size_t slots = slots_of(kind, slot_count_), per_slot = all.size() / slots;
  for (size_t i = 0; i < per_slot; ++i) {
    GpuBinding& b = *all[chunk % slots * per_slot + i];
    if (b.program().rows.shards[0] == worker_.row_count(micro)) return b;
  }
  fail(Fault::failed, "no program for {} samples", worker_.row_count(micro));
}

}  // namespace dpt
