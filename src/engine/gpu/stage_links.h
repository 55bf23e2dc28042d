// Stages whose GPUs are processes, where none sees the other's memory: what crosses is sent and
// received (carrier.h).
//
// The earlier stage of two keeps what it sends, and has room for what comes back, from a chunk's
// forward to its backward part, so it sends as soon as that forward part is done, takes what comes
// whenever it comes, and waits for both before the backward part. The later stage receives and
// sends in the middle of its parts, where its program has the copies.
//
// Note [one list]: every GPU of a run goes through one list, the ops of all stages in an order in
// which each follows what it needs, and tells its GPU its side of each op's copies: of its own ops
// as their kernels, of others' as it follows them. All that may wait for another GPU, the sums of
// replicas too, goes to one stream of each GPU in that order. So among all that is not done yet the
// first of the list can always be done: what it needs stands before it, and on no GPU stands
// anything else in front of it. That holds whatever NCCL's calls share, how many of its kernels fit
// on a GPU at once, and where a call blocks the host until the other side has come, as the first
// one between two GPUs does. Calls of one communicator come in the same order on all ranks. All of
// it holds within a captured step, too: within one, every event that is waited for was recorded
// there, and the context's stream, behind the verdict, has waited for all calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/gpu/carrier.h"
#include "engine/gpu/stages.h"

namespace dpt {

class DeviceLinks final : public DeviceStages {
 public:
  // All workers; waits for the others. REQUIRES: session.stages_apart(); all references outlive it.
  DeviceLinks(const Session& session, cuda::DeviceContext& context, DeviceTeam& gpus);

  std::unique_ptr<Kernel> copy(const Copy& way) override;
  const std::vector<StageOp>& ops() const override { return ops_; }
  void begin(const StageOp& op) override;
  void end(const StageOp& op) override;
  void follow(const StageOp& op, const DeviceBinding* b) override;
  void begin_test(int stage, int64_t batch) override;
  void end_test(int stage, int64_t batch) override;
  void follow_test(int stage, int64_t batch, const DeviceBinding* b) override;
  void end_evaluation(int64_t) override { join(); }
  void hand_on(const StageOp& op, const DeviceBinding* b) override;
  bool gather_powers(DeviceUpdate& update) override;
  void tell() override;
  const cuda::StepState* hear() override;
  void end_step() override {}  // that the verdict is here says that all else has come and gone
  cuda::Stream* calls() override { return stream_.get(); }
  void check() override { carrier_->check(); }
  void finish() override { carrier_->finish(); }
  cuda::Communicator* communicator() override { return carrier_->communicator(); }

 private:
  bool sees(int stage) const override { return has(stage); }
  // What lies at `data` on that device, behind what the context's stream was told before, goes to
  // the same memory of the other one, before what it is told afterwards.
  void pass(std::byte* data, size_t bytes, int from, int to);
  void broadcast_verdict();
  void join();  // the context's stream goes on once all that was to cross has crossed
  void wait_for_crossed(size_t slot);
  // Of an own stage, and a chunk or an evaluation's turn.
  size_t slot(int stage, size_t chunk) const;

  std::vector<StageOp> ops_;  // of all devices
  std::unique_ptr<cuda::Stream> stream_;
  std::unique_ptr<cuda::Event> begun_, ended_;  // of pass()
  // The forward part; the last that has gone from there, or come back.
  std::vector<std::unique_ptr<cuda::Event>> made_, crossed_;  // [slot()]
  // Whether something has that nobody waited for: a captured step can't wait for what came before.
  std::vector<bool> crosses_;
  std::unique_ptr<DeviceCarrier> carrier_;  // gone before what its calls may be waiting with
};

}  // namespace dpt
