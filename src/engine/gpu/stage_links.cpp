#include "engine/gpu/stage_links.h"

#include <any>

#include "graph/attrs.h"
#include "graph/operator.h"

namespace dpt {

StageLinks::StageLinks(const Session& session, cuda::DeviceContext& context, GpuTeam& gpus)
    : GpuStages(session, context, gpus),
      stream_(context.api.make_urgent_stream()),
      begun_(context.api.make_event()),
      ended_(context.api.make_event()),
      made_(slot(last() + 1, 0)),
      crossed_(made_.size()),
      crosses_(made_.size()),
      transport_(make_gpu_transport(session, context.api, gpus)) {
  for (const int stage : own())
    for (size_t chunk = 0; chunk < slot(1, 0); ++chunk) {
      made_[slot(stage, chunk)] = context.api.make_event();
      crossed_[slot(stage, chunk)] = context.api.make_event();
    }
  // Memory of other devices is never accessed, so any address will do for them.
  arenas_.emplace(session,
                  std::vector(static_cast<size_t>(session.devices.topology.devices_per_replica),
                              activations_.data()));
}

size_t StageLinks::slot(int stage, size_t chunk) const {
  return static_cast<size_t>(stage * session_.batches.train->accumulate()) + chunk;
}

void StageLinks::pass(std::byte* data, size_t bytes, int from, int to) {
  const int here = gpus_.device();
  if (from == to || (here != from && here != to)) return;
  context_.stream.record(*begun_);
  stream_->wait(*begun_);
  here == from ? transport_->send(*stream_, data, bytes, to)
               : transport_->receive(*stream_, data, bytes, from);
  stream_->record(*ended_);
  context_.stream.wait(*ended_);
}

std::unique_ptr<Kernel> StageLinks::copy(const Copy& way) {
  class Passes final : public Kernel {
   public:
    Passes(StageLinks& links, int from, int to) : links_(links), from_(from), to_(to) {}
    void run(const KernelArgs& args) override {
      const TensorView& value = links_.gpus_.device() == from_ ? args.in[0] : args.out[0];
      links_.pass(value.data, value.desc.bytes(), from_, to_);
    }

   private:
    StageLinks& links_;
    int from_, to_;
  };
  const int from = device_of(way.from), to = device_of(way.to);
  return from == to ? nullptr : std::make_unique<Passes>(*this, from, to);
}

// A backward pass waits for all that its stage sent and received of the chunk.
void StageLinks::wait(const PlanStep& step) {
  wait_for_crossed(slot(step.stage, static_cast<size_t>(step.chunk)));
}

void StageLinks::wait_for_crossed(size_t slot) {
  if (crosses_[slot]) context_.stream.wait(*crossed_[slot]);
  crosses_[slot] = false;
}

void StageLinks::made(const StageOp& op) {
  context_.stream.record(*made_[slot(op.stage, static_cast<size_t>(op.chunk))]);
}

void StageLinks::follow(const StageOp& op, const GpuBinding* b) {
  if (b == nullptr) return;
  const Program& program = b->program();
  for (const Instruction& i : program.part(op.backward ? Part::backward : Part::forward)) {
    const GraphNode& n = program.graph.nodes[i.node];
    const auto* const way = std::any_cast<Copy>(&n.attrs);
    if (way == nullptr || n.stage != op.stage) continue;
    const bool sends = way->to == op.stage;
    const int own = sends ? way->from : way->to;
    if (!has(own)) continue;
    const size_t chunk = slot(own, static_cast<size_t>(op.chunk));
    const TensorView value = b->view(sends ? n.in[0] : n.out[0]);
    // What a receive brings depends on an earlier send, so only sends wait for the forward pass.
    if (sends) stream_->wait(*made_[chunk]);
    sends ? transport_->send(*stream_, value.data, value.desc.bytes(), device_of(op.stage))
          : transport_->receive(*stream_, value.data, value.desc.bytes(), device_of(op.stage));
    stream_->record(*crossed_[chunk]);
    crosses_[chunk] = true;
  }
}

// A stage's slot is free again when the batch that used it has been transferred.
void StageLinks::begin_test(int stage, int64_t batch) {
  if (const int64_t there = session_.model.same_slot_before(stage, batch); there >= 0)
    wait_for_crossed(slot(stage, slot_of(there)));
}

// Limits how far the host runs ahead, so that a wait never takes as long as a whole evaluation.
void StageLinks::end_test(int stage, int64_t batch) {
  cuda::Event& made = *made_[slot(stage, slot_of(batch))];
  if (batch >= session_.model.slot_count) gpus_.wait(made);
  context_.stream.record(made);
}

void StageLinks::follow_test(int stage, int64_t batch, const GpuBinding* b) {
  follow({.stage = stage, .chunk = static_cast<int>(slot_of(batch)), .backward = false}, b);
}

void StageLinks::pass_on(const StageOp& op, const GpuBinding* b) {
  has(op.stage) ? made(op) : follow(op, b);
  join();
}

void StageLinks::join() {
  stream_->record(*ended_);
  context_.stream.wait(*ended_);
  crosses_.assign(crosses_.size(), false);
}

bool StageLinks::gather_norm_partials(GpuUpdate& update) {
  if (update.looks())
    for (int d = 0; d < session_.devices.topology.devices_per_replica; ++d)
      pass(reinterpret_cast<std::byte*>(update.device_norm_partials() + d), sizeof(double), d,
           device_of(last()));
  return has(last());
}

void StageLinks::broadcast_decision() {
  context_.stream.copy(decision_.data(), context_.state, sizeof(cuda::StepState));
  broadcast_verdict();
}

void StageLinks::broadcast_verdict() {
  context_.stream.record(*begun_);
  stream_->wait(*begun_);
  transport_->broadcast(*stream_, decision_.data(), decision_.bytes(), device_of(last()));
  stream_->record(*ended_);
  context_.stream.wait(*ended_);
}

const cuda::StepState* StageLinks::receive_decision() {
  broadcast_verdict();
  return decision();
}

}  // namespace dpt
