// GpuExecutor: one training step as it is enqueued or captured: input, forward, loss, backward,
// sums over GPUs, judgement, update.
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/gather.h"
#include "engine/gpu/executor.h"
#include "graph/operator.h"

namespace dpt {

// Below, b is null if this GPU has no rows of the micro-batch.
void GpuExecutor::begin(const GpuBinding* b, const StepRows& rows, size_t micro,
                        const cuda::StepEntry* entry, bool divides) {
  const auto address = [&](ValueId Graph::*value) {
    const ValueId v = b ? b->program().graph.*value : kNoValue;
    return v == kNoValue ? nullptr : reinterpret_cast<float*>(b->view(v).data);
  };
  const ShardRows& mine = own(rows.micro[micro]);
  cuda::launch(*stream_,
               cuda::BeginBatch{.entry = entry,
                                .state = context_.state,
                                .offset = mine.rows.begin - own(rows.micro[0]).rows.begin,
                                .first_sample = mine.first_sample,
                                .last_chunk = session_.last_chunk(rows, micro),
                                .divides = divides,
                                .divisor = address(&Graph::divisor),
                                .scale = address(&Graph::scale)},
               1);
}

void GpuExecutor::enqueue(const StepRows& rows, size_t step, size_t slot) {
  if (stages_) return enqueue_stages(rows, step, slot);
  if (session_.divisor == Divisor::targets) enqueue_divisor(rows, step, slot);
  const std::byte* loss = nullptr;
  for (size_t m = 0; m < rows.micro.size(); ++m) {
    GpuBinding* const b = own(rows.micro[m]).rows.count() == 0
                              ? nullptr
                              : &binding(rows.micro[m], m == 0 ? train : train_more);
    begin(b, rows, m, launch_queue_.entry(step), session_.divisor != Divisor::targets);
    if (b) {
      batch_input_->enqueue_input(*b, m, slot);
      batch_input_->enqueue_target(*b, m, slot);
    }
    run_part(Part::forward, b, [](size_t) {});
    loss = enqueue_loss(rows.micro[m], m, b);
    const bool last = m + 1 == rows.micro.size();
    if (last && exchange_) exchange_->sum_losses();
    enqueue_backward(m, last, b);
  }
  sum_gradients(true);
  decide_update(rows, step, loss);
  update_.update();
  if (exchange_) exchange_->share_weights();
}

// Sums gradients over micro-batches and GPUs, then computes what judge() needs.
void GpuExecutor::sum_gradients(bool losses) {
  if (exchange_)
    exchange_->end(losses);
  else if (session_.exchange.compress)
    update_.round_gradients();
  update_.measure();
  if (exchange_) exchange_->share_norm_partials();
  update_.join_pieces();
}

void GpuExecutor::decide_update(const StepRows& rows, size_t step, const std::byte* loss) {
  update_.decide_update(step, loss);
  if (!reports_first()) return;
  const auto count = static_cast<int64_t>(GpuUpdate::losses_of_step(session_));
  const int64_t weights = session_.divisor == Divisor::targets ? std::ssize(rows.micro) : 0;
  const auto* const summed = reinterpret_cast<const double*>(target_weights_.data());
  cuda::launch(*stream_,
               cuda::ReportFirst{.losses = update_.losses() + count,
                                 .weights = summed + weights,
                                 .losses_count = count,
                                 .weights_count = weights,
                                 .state = context_.state,
                                 .report = launch_queue_.report(step)},
               1);
}

// Without rows any program will do: the order of the sums is the same in all.
const Program& GpuExecutor::program_of(const GpuBinding* b) const {
  return b ? b->program() : session_.programs.begin()->second;
}

// Runs a part, with the sums over GPUs of sync_batch_norm. Without rows it only takes part in the
// sums.
template <class After>
void GpuExecutor::run_part(Part part, GpuBinding* b, After after) {
  const Program& program = program_of(b);
  const bool syncs = exchange_ && session_.spec.sync_batch_norm;
  const std::vector<Instruction>& all = program.part(part);
  for (size_t i = 0; i < all.size(); ++i) {
    if (b) b->run_one(part, i);
    const GraphNode& n = program.graph.nodes[all[i].node];
    if (syncs && n.op->name == "all_reduce")
      exchange_->sum_now(b ? b->view(n.out[0]).data : nullptr, program.graph[n.out[0]].desc);
    after(i);
  }
}

// Returns the loss if it is the step's only one and stays in place until judge() reads it, else
// null.
const std::byte* GpuExecutor::enqueue_loss(const Micro& micro, size_t number, GpuBinding* b) {
  if (!gather_) {
    if (b) b->run(Part::loss);
    const std::byte* const loss = b ? b->view(b->program().graph.loss).data : nullptr;
    if (!exchange_ && GpuUpdate::losses_of_step(session_) == 1) return loss;
    update_.keep_loss(number, loss);
    return nullptr;
  }
  gather_->gather(micro, b);
  const auto shards = static_cast<size_t>(session_.topology.shards);
  for (size_t s = 0; s < shards; ++s) {
    const int64_t rows = micro[s].rows.count();
    const std::byte* loss = nullptr;
    if (gather_->here() && rows > 0) {
      const bool mine = static_cast<int>(s) == shard_;
      if (mine) b->run(Part::loss);
      loss = mine ? b->view(b->program().graph.loss).data
                  : gather_->loss_of(static_cast<int>(s), rows);
    }
    update_.keep_loss(number * shards + s, loss);
  }
  gather_->scatter(micro, b);
  return nullptr;
}

void GpuExecutor::enqueue_backward(size_t number, bool last, GpuBinding* b) {
  const bool sums = last && exchange_ && exchange_->by_nccl();
  if (!b && number == 0) update_.no_gradients(0, session_.layout.stored);
  if (sums) exchange_->begin(program_of(b), b != nullptr && number > 0);
  run_part(Part::backward, b, [&](size_t i) {
    if (sums) exchange_->after(i);
  });
  if (b && !sums && number > 0) update_.add_gradients(0, session_.layout.stored);
}

// If the targets determine the divisor of the loss, it is computed before the forward pass.
void GpuExecutor::enqueue_divisor(const StepRows& rows, size_t step, size_t slot) {
  auto* const weights = reinterpret_cast<double*>(target_weights_.data());
  for (size_t m = 0; m < rows.micro.size(); ++m) {
    if (own(rows.micro[m]).rows.count() == 0) {
      stream_->fill(weights + m, 0, sizeof(double));
      continue;
    }
    GpuBinding& b = binding(rows.micro[m], train);
    begin(&b, rows, m, launch_queue_.entry(step), false);
    batch_input_->enqueue_target(b, m, slot);
    b.run(Part::prologue, last_stage());
    stream_->copy(weights + m, b.view(b.program().graph.target_weight).data, sizeof(double));
  }
  if (exchange_) exchange_->sum_terms(weights, rows.micro.size(), &ShardResult::weight);
  cuda::launch(
      *stream_,
      cuda::SumDivisor{
          .weights = weights, .micro_batches = std::ssize(rows.micro), .state = context_.state},
      1);
}

}  // namespace dpt
