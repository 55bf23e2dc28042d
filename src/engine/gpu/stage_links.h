// Stages whose GPUs belong to different processes: values cross by send and receive (transport.h).
//
// The earlier of two stages keeps what it sends, and has memory for what it receives back, from a
// chunk's forward pass to its backward pass. So it sends when the forward pass is done, receives at
// any time, and waits for both before the backward pass. The later stage receives and sends within
// its passes, where its program has the copies.
//
// Note [one list]: all GPUs of a run go through the same list: the ops of all stages, in an order
// in which each op follows the ops that it depends on. For each op, a GPU enqueues its side of the
// op's copies: as kernels if the op is its own, as `send` or `receive` otherwise. Everything that
// may wait for another GPU, including the sums over replicas, is enqueued on one stream of each GPU
// in that order (parallel/stage_lists.h makes the lists). So the first op of the list that is not
// done can always proceed: its dependencies are earlier in the list, and on no GPU does anything
// else precede it. This is true no matter what resources NCCL's calls share, how many of its
// kernels fit on a GPU at once, and whether a call blocks the host until the other side arrives, as
// the first call between two GPUs does. Calls of a communicator have the same order on all its
// ranks. It also holds within a captured step: every event that is waited for was recorded in the
// same capture, and the context's stream, which continues after the decision, has then waited for
// all calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/gpu/stages.h"
#include "engine/gpu/transport.h"

namespace dpt {

class StageLinks final : public GpuStages {
 public:
  // Called on all workers; waits for the others. REQUIRES: session.devices.stages_are_processes();
  // all references outlive it.
  StageLinks(const Session& session, cuda::DeviceContext& context, GpuTeam& gpus);

  std::unique_ptr<Kernel> copy(const Copy& way) override;
  void wait(const PlanStep& step) override;
  void record(const PlanStep& step) override { made(step.stage_op()); }
  void exchange(const PlanStep& step, const GpuBinding* b) override { follow(step.stage_op(), b); }
  void begin_test(int stage, int64_t batch) override;
  void end_test(int stage, int64_t batch) override;
  void follow_test(int stage, int64_t batch, const GpuBinding* b) override;
  void end_evaluation(int64_t) override { join(); }
  void pass_on(const StageOp& op, const GpuBinding* b) override;
  bool gather_norm_partials(GpuUpdate& update) override;
  void broadcast_decision() override;
  const cuda::StepState* receive_decision() override;
  void end_step() override {}  // when the decision has arrived, all other transfers are done
  cuda::Stream* calls() override { return stream_.get(); }
  void check() override { transport_->check(); }
  void finish() override { transport_->finish(); }
  cuda::Communicator* communicator() override { return transport_->communicator(); }

 private:
  bool sees(int stage) const override { return has(stage); }
  void made(const StageOp& op);                         // an own forward pass is enqueued
  void follow(const StageOp& op, const GpuBinding* b);  // this GPU's side of the op's copies
  // Copies `data` of device `from` to `data` of device `to`, ordered behind the work already
  // enqueued on the context's stream and before later work.
  void pass(std::byte* data, size_t bytes, int from, int to);
  void broadcast_verdict();
  void join();  // the context's stream waits for all transfers
  void wait_for_crossed(size_t slot);
  // Index of an own stage's chunk, or of its evaluation slot.
  size_t slot(int stage, size_t chunk) const;

  std::unique_ptr<cuda::Stream> stream_;
  std::unique_ptr<cuda::Event> begun_, ended_;  // used by pass()
  // [slot()] made_: the forward pass is done. crossed_: the last transfer from or to the stage is
  // done.
  std::vector<std::unique_ptr<cuda::Event>> made_, crossed_;
  // [slot()] a transfer that nothing has waited for yet; a captured step must not wait for
  // transfers that were enqueued before it.
  std::vector<bool> crosses_;
  // Destroyed before the memory and events that its waiting calls may use.
  std::unique_ptr<GpuTransport> transport_;
};

}  // namespace dpt
