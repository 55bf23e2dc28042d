#include "engine/gpu/stage_links.h"

#include <any>

#include "graph/attrs.h"
#include "graph/operator.h"
#include "parallel/schedule.h"

namespace dpt {

DeviceLinks::DeviceLinks(const Session& session, cuda::DeviceContext& context, DeviceTeam& gpus)
    : DeviceStages(session, context, gpus),
      ops_(in_one_order(session.plan.schedule)),
      stream_(context.api.make_urgent_stream()),
      begun_(context.api.make_event()),
      ended_(context.api.make_event()),
      made_(slot(last() + 1, 0)),
      crossed_(made_.size()),
      crosses_(made_.size()),
      carrier_(make_device_carrier(session, context.api, gpus)) {
  for (const int stage : own())
    for (size_t chunk = 0; chunk < slot(1, 0); ++chunk) {
      made_[slot(stage, chunk)] = context.api.make_event();
      crossed_[slot(stage, chunk)] = context.api.make_event();
    }
  // Memory of other devices is never accessed, so any address will do for them.
  arenas_.emplace(session, std::vector(static_cast<size_t>(session.who.span), activations_.data()));
}

size_t DeviceLinks::slot(int stage, size_t chunk) const {
  return static_cast<size_t>(stage * session_.batches->accumulate()) + chunk;
}

void DeviceLinks::pass(std::byte* data, size_t bytes, int from, int to) {
  const int here = gpus_.device();
  if (from == to || (here != from && here != to)) return;
  context_.stream.record(*begun_);
  stream_->wait(*begun_);
  here == from ? carrier_->send(*stream_, data, bytes, to)
               : carrier_->receive(*stream_, data, bytes, from);
  stream_->record(*ended_);
  context_.stream.wait(*ended_);
}

std::unique_ptr<Kernel> DeviceLinks::copy(const Copy& way) {
  class Passes final : public Kernel {
   public:
    Passes(DeviceLinks& links, int from, int to) : links_(links), from_(from), to_(to) {}
    void run(const KernelArgs& args) override {
      const TensorView& value = links_.gpus_.device() == from_ ? args.in[0] : args.out[0];
      links_.pass(value.data, value.desc.bytes(), from_, to_);
    }

   private:
    DeviceLinks& links_;
    int from_, to_;
  };
  const int from = device_of(way.from), to = device_of(way.to);
  return from == to ? nullptr : std::make_unique<Passes>(*this, from, to);
}

void DeviceLinks::begin(const StageOp& op) {
  if (op.backward) wait_for_crossed(slot(op.stage, static_cast<size_t>(op.chunk)));
}

void DeviceLinks::wait_for_crossed(size_t slot) {
  if (crosses_[slot]) context_.stream.wait(*crossed_[slot]);
  crosses_[slot] = false;
}

void DeviceLinks::end(const StageOp& op) {
  if (!op.backward) context_.stream.record(*made_[slot(op.stage, static_cast<size_t>(op.chunk))]);
}

void DeviceLinks::follow(const StageOp& op, const DeviceBinding* b) {
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
    sends ? carrier_->send(*stream_, value.data, value.desc.bytes(), device_of(op.stage))
          : carrier_->receive(*stream_, value.data, value.desc.bytes(), device_of(op.stage));
    stream_->record(*crossed_[chunk]);
    crosses_[chunk] = true;
  }
}

// A stage's slot is free again when the batch that used it has been transferred.
void DeviceLinks::begin_test(int stage, int64_t batch) {
  if (const int64_t there = session_.same_slot_before(stage, batch); there >= 0)
    wait_for_crossed(slot(stage, turn_of(there)));
}

// Limits how far the host runs ahead, so that a wait never takes as long as a whole evaluation.
void DeviceLinks::end_test(int stage, int64_t batch) {
  cuda::Event& made = *made_[slot(stage, turn_of(batch))];
  if (batch >= session_.turns()) gpus_.wait(made);
  context_.stream.record(made);
}

void DeviceLinks::follow_test(int stage, int64_t batch, const DeviceBinding* b) {
  follow({.stage = stage, .chunk = static_cast<int>(turn_of(batch)), .backward = false}, b);
}

void DeviceLinks::hand_on(const StageOp& op, const DeviceBinding* b) {
  has(op.stage) ? end(op) : follow(op, b);
  join();
}

void DeviceLinks::join() {
  stream_->record(*ended_);
  context_.stream.wait(*ended_);
  crosses_.assign(crosses_.size(), false);
}

bool DeviceLinks::gather_powers(DeviceUpdate& update) {
  if (update.looks())
    for (int d = 0; d < session_.who.span; ++d)
      pass(reinterpret_cast<std::byte*>(update.device_powers() + d), sizeof(double), d,
           device_of(last()));
  return has(last());
}

void DeviceLinks::tell() {
  context_.stream.copy(verdict_.data(), context_.state, sizeof(cuda::StepState));
  broadcast_verdict();
}

void DeviceLinks::broadcast_verdict() {
  context_.stream.record(*begun_);
  stream_->wait(*begun_);
  carrier_->broadcast(*stream_, verdict_.data(), verdict_.bytes(), device_of(last()));
  stream_->record(*ended_);
  context_.stream.wait(*ended_);
}

const cuda::StepState* DeviceLinks::hear() {
  broadcast_verdict();
  return verdict();
}

}  // namespace dpt
