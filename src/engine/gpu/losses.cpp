#include "engine/gpu/losses.h"

#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/update.h"
#include "engine/step_numbers.h"

namespace dpt {

GpuLosses::GpuLosses(const GpuWorker& worker, const GpuBindingTable& bindings, GpuUpdate& update,
                     const LaunchQueue& launch_queue, GpuExchange* exchange, GpuGather* gather)
    : worker_(worker),
      bindings_(bindings),
      update_(update),
      launch_queue_(launch_queue),
      exchange_(exchange),
      gather_(gather),
      micro_batches_(static_cast<size_t>(worker.session.batches.train->accumulate())),
      target_weights_(worker.api(), cuda::MemoryKind::device, 2 * micro_batches_ * sizeof(double)) {
}

GpuExchange::Terms GpuLosses::terms_of(Quantity what) const {
  if (what == Quantity::divisor)
    return {.data = reinterpret_cast<double*>(target_weights_.data()),
            .count = micro_batches_,
            .decisions = nullptr};
  if (what == Quantity::loss)
    return {.data = update_.losses(),
            .count = GpuUpdate::losses_of_step(worker_.session.devices, worker_.session.batches),
            .decisions = launch_queue_.decisions()};
  return {};
}

void GpuLosses::run_prologue(const StepRows& rows, size_t micro) {
  double* const weight = terms_of(Quantity::divisor).data + micro;
  GpuBinding* const b = bindings_.find(rows.micro[micro], ProgramKind::train);
  if (!b) return worker_.stream().fill(weight, 0, sizeof(double));
  b->run(Part::prologue, worker_.stages.last());
  worker_.stream().copy(weight, b->view(b->program().graph.target_weight).data, sizeof(double));
}

void GpuLosses::sum_divisor(const StepRows& rows) {
  cuda::launch(worker_.stream(),
               cuda::SumDivisor{.weights = terms_of(Quantity::divisor).data,
                                .micro_batches = std::ssize(rows.micro),
                                .state = worker_.context.state},
               1);
}

// A step's only loss stays in place until the decision.
const std::byte* GpuLosses::run(const StepRows& rows, size_t micro, GpuBinding* b) {
  if (gather_) {
    run_all(rows, micro, b);
    return nullptr;
  }
  if (b) b->run(Part::loss, worker_.stages.last());
  const std::byte* const loss = b ? b->view(b->program().graph.loss).data : nullptr;
  const bool alone = !exchange_ && worker_.session.devices.topology.devices_per_replica == 1;
  if (alone && GpuUpdate::losses_of_step(worker_.session.devices, worker_.session.batches) == 1)
    return loss;
  update_.keep_loss(micro, loss);
  return nullptr;
}

// One GPU computes the loss of all shards' rows; the others keep zeros.
void GpuLosses::run_all(const StepRows& rows, size_t micro, GpuBinding* b) {
  const auto shards = static_cast<size_t>(worker_.session.devices.topology.shards);
  for (size_t s = 0; s < shards; ++s) {
    const int64_t count = rows.micro[micro][s].rows.count();
    const std::byte* loss = nullptr;
    if (gather_->here() && count > 0) {
      const bool mine = static_cast<int>(s) == worker_.shard;
      if (mine) b->run(Part::loss);
      loss = mine ? b->view(b->program().graph.loss).data
                  : gather_->loss_of(static_cast<int>(s), count);
    }
    update_.keep_loss(micro * shards + s, loss);
  }
}

void GpuLosses::decide(size_t step, const std::byte* only_loss) {
  update_.decide_update(step, only_loss);
  if (reports_rank0_loss(worker_.session.settings.spec, worker_.session.devices,
                         worker_.session.model))
    report_rank0(step);
}

void GpuLosses::report_rank0(size_t step) {
  const GpuExchange::Terms losses = terms_of(Quantity::loss), weights = terms_of(Quantity::divisor);
  const bool weighted = worker_.session.model.divisor == Divisor::targets;
  cuda::launch(
      worker_.stream(),
      cuda::ReportFirst{.losses = losses.data + losses.count,
                        .weights = weights.data + (weighted ? weights.count : 0),
                        .losses_count = static_cast<int64_t>(losses.count),
                        .weights_count = weighted ? static_cast<int64_t>(weights.count) : 0,
                        .state = worker_.context.state,
                        .report = launch_queue_.report(step)},
      1);
}

}  // namespace dpt
