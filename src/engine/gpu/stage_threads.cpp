#include "engine/gpu/stage_threads.h"

#include <algorithm>
#include <exception>

namespace dpt {

StageThreads::StageThreads(const Session& session, cuda::DeviceContext& context, GpuTeam& gpus)
    : GpuStages(session, context, gpus),
      posted_(static_cast<size_t>(session.devices.topology.devices_per_replica)) {
  cuda::DeviceApi& api = context.api;
  shared_.activations = activations_.data();
  shared_.decision = decision_.data();
  shared_.done.resize(
      static_cast<size_t>(session.model.graph.stages() * session.batches.train->accumulate()));
  for (const StageOp& op : ops_of(gpus_.device()))
    done(shared_, op.stage, static_cast<size_t>(op.chunk), op.backward) = api.make_event();
  shared_.measured = api.make_event();
  shared_.decided = api.make_event();
  gpus_.publish(gpus_.worker(), reinterpret_cast<std::byte*>(&shared_));
  peer_access_.emplace(gpus_, context_.stream);
  gpus_.barrier();
  std::vector<std::byte*> begins;
  for (int d = 0; d < session_.devices.topology.devices_per_replica; ++d) {
    api.reach(session.devices.gpu_of_worker[static_cast<size_t>(gpus_.worker_of(d))]);
    begins.push_back(of(d).activations);
  }
  arenas_.emplace(session_, begins);
}

StageThreads::PeerAccess::PeerAccess(GpuTeam& gpus, cuda::Stream& stream)
    : gpus_(gpus), stream_(stream) {
  gpus_.arrive();
}

void StageThreads::break_up_team(GpuTeam& gpus) noexcept {
  if (std::uncaught_exceptions() > 0)
    gpus.team().break_up(gpus.worker() / gpus.team().shape().workers_per_rank,
                         "a GPU with other stages of the model failed",
                         static_cast<int>(Fault::rank), true);
}

StageThreads::PeerAccess::~PeerAccess() {
  break_up_team(gpus_);
  try {
    stream_.synchronise();
  } catch (const Error&) {  // reported already
  }
  gpus_.leave();
}

std::unique_ptr<cuda::Event>& StageThreads::done(Shared& of, int stage, size_t chunk,
                                                 bool backward) const {
  const auto chunks = static_cast<size_t>(session_.batches.train->accumulate());
  return of.done[static_cast<size_t>(stage) * chunks + chunk][backward ? 1 : 0];
}

void StageThreads::wait_for(int device, uint32_t posts, cuda::Event& event) {
  gpus_.team().wait_for(gpus_.worker_of(device), posted_[static_cast<size_t>(device)] + posts);
  context_.stream.wait(event);
}

void StageThreads::record_event(cuda::Event& event) {
  context_.stream.record(event);
  gpus_.team().post(gpus_.worker());
}

void StageThreads::wait(const PlanStep& step) {
  const auto& theirs = ops_of(step.device);
  const auto at = std::ranges::find(theirs, step.stage_op());
  wait_for(step.device, static_cast<uint32_t>(at - theirs.begin()) + 1,
           *done(of(step.device), step.stage, static_cast<size_t>(step.chunk),
                 step.stage_op().backward));
}

void StageThreads::record(const PlanStep& step) {
  record_event(
      *done(shared_, step.stage, static_cast<size_t>(step.chunk), step.stage_op().backward));
}

bool StageThreads::gather_norm_partials(GpuUpdate& update) {
  shared_.norm_partials = update.device_norm_partials() + gpus_.device();
  record_event(*shared_.measured);
  if (!has(last())) return false;
  for (int d = 0; d < session_.devices.topology.devices_per_replica; ++d) {
    if (d == gpus_.device()) continue;
    wait_for(d, static_cast<uint32_t>(ops_of(d).size()) + 1, *of(d).measured);
    if (update.looks())
      context_.stream.copy(update.device_norm_partials() + d, of(d).norm_partials, sizeof(double));
  }
  return true;
}

void StageThreads::broadcast_decision() {
  context_.stream.copy(decision_.data(), context_.state, sizeof(cuda::StepState));
  record_event(*shared_.decided);
}

const cuda::StepState* StageThreads::receive_decision() {
  const int device = device_of(last());
  wait_for(device, static_cast<uint32_t>(ops_of(device).size()) + 2, *of(device).decided);
  context_.stream.copy(decision_.data(), of(device).decision, sizeof(cuda::StepState));
  return decision();
}

void StageThreads::end_step() {
  for (int d = 0; d < session_.devices.topology.devices_per_replica; ++d)
    posted_[static_cast<size_t>(d)] +=
        static_cast<uint32_t>(ops_of(d).size()) + (d == device_of(last()) ? 2 : 1);
}

// A stage's slot is free again when the last stage is done with the batch that used it: nothing
// reads that batch afterwards.
void StageThreads::begin_test(int stage, int64_t batch) {
  if (stage > 0) wait_for_test(stage - 1, batch);
  if (const int64_t there = session_.model.same_slot_before(stage, batch); there >= 0)
    wait_for_test(last(), there);
}

void StageThreads::end_test(int stage, int64_t batch) {
  record_event(*done(shared_, stage, slot_of(batch), false));
}

void StageThreads::end_evaluation(int64_t batches) {
  for (int s = 0; s <= last(); ++s)
    posted_[static_cast<size_t>(device_of(s))] += static_cast<uint32_t>(batches);
}

void StageThreads::wait_for_test(int stage, int64_t batch) {
  if (has(stage)) return;
  const int device = device_of(stage);
  wait_for(device, static_cast<uint32_t>(session_.model.test_parts_until(stage, batch)),
           *done(of(device), stage, slot_of(batch), false));
}

}  // namespace dpt
