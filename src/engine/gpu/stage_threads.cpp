#include "engine/gpu/stage_threads.h"

#include <algorithm>
#include <exception>

namespace dpt {

DeviceThreads::DeviceThreads(const Session& session, cuda::DeviceContext& context, DeviceTeam& gpus)
    : DeviceStages(session, context, gpus), posted_(static_cast<size_t>(session.who.span)) {
  cuda::DeviceApi& api = context.api;
  shared_.activations = activations_.data();
  shared_.verdict = verdict_.data();
  shared_.done.resize(static_cast<size_t>(session.graph.stages() * session.batches->accumulate()));
  for (const StageOp& op : ops_of(gpus_.device()))
    done(shared_, op.stage, static_cast<size_t>(op.chunk), op.backward) = api.make_event();
  shared_.measured = api.make_event();
  shared_.judged = api.make_event();
  gpus_.publish(gpus_.worker(), reinterpret_cast<std::byte*>(&shared_));
  present_.emplace(gpus_, context_.stream);
  gpus_.meet();
  std::vector<std::byte*> begins;
  for (int d = 0; d < session_.who.span; ++d) {
    api.reach(session.gpu_of_worker[static_cast<size_t>(gpus_.worker_of(d))]);
    begins.push_back(of(d).activations);
  }
  arenas_.emplace(session_, begins);
}

DeviceThreads::Present::Present(DeviceTeam& gpus, cuda::Stream& stream)
    : gpus_(gpus), stream_(stream) {
  gpus_.arrive();
}

void DeviceThreads::tell_failure(DeviceTeam& gpus) noexcept {
  if (std::uncaught_exceptions() > 0)
    gpus.team().break_up(gpus.worker() / gpus.team().shape().workers_per_rank,
                         "a GPU with other stages of the model failed",
                         static_cast<int>(Fault::rank), true);
}

DeviceThreads::Present::~Present() {
  tell_failure(gpus_);
  try {
    stream_.synchronise();
  } catch (const Error&) {  // reported already
  }
  gpus_.leave();
}

std::unique_ptr<cuda::Event>& DeviceThreads::done(Shared& of, int stage, size_t chunk,
                                                  bool backward) const {
  const auto chunks = static_cast<size_t>(session_.batches->accumulate());
  return of.done[static_cast<size_t>(stage) * chunks + chunk][backward ? 1 : 0];
}

void DeviceThreads::wait_for(int device, uint32_t posts, cuda::Event& event) {
  gpus_.team().wait_for(gpus_.worker_of(device), posted_[static_cast<size_t>(device)] + posts);
  context_.stream.wait(event);
}

void DeviceThreads::record(cuda::Event& event) {
  context_.stream.record(event);
  gpus_.team().post(gpus_.worker());
}

// A forward pass follows the previous stage's, a backward pass the next stage's.
void DeviceThreads::begin(const StageOp& op) {
  const int before = op.backward ? op.stage + 1 : op.stage - 1;
  if (before < 0 || before > last() || has(before)) return;
  const int device = device_of(before);
  const auto& theirs = ops_of(device);
  const auto at = std::ranges::find(
      theirs, StageOp{.stage = before, .chunk = op.chunk, .backward = op.backward});
  wait_for(device, static_cast<uint32_t>(at - theirs.begin()) + 1,
           *done(of(device), before, static_cast<size_t>(op.chunk), op.backward));
}

void DeviceThreads::end(const StageOp& op) {
  record(*done(shared_, op.stage, static_cast<size_t>(op.chunk), op.backward));
}

bool DeviceThreads::gather_powers(DeviceUpdate& update) {
  shared_.powers = update.device_powers() + gpus_.device();
  record(*shared_.measured);
  if (!has(last())) return false;
  for (int d = 0; d < session_.who.span; ++d) {
    if (d == gpus_.device()) continue;
    wait_for(d, static_cast<uint32_t>(ops_of(d).size()) + 1, *of(d).measured);
    if (update.looks())
      context_.stream.copy(update.device_powers() + d, of(d).powers, sizeof(double));
  }
  return true;
}

void DeviceThreads::tell() {
  context_.stream.copy(verdict_.data(), context_.state, sizeof(cuda::StepState));
  record(*shared_.judged);
}

const cuda::StepState* DeviceThreads::hear() {
  const int device = device_of(last());
  wait_for(device, static_cast<uint32_t>(ops_of(device).size()) + 2, *of(device).judged);
  context_.stream.copy(verdict_.data(), of(device).verdict, sizeof(cuda::StepState));
  return verdict();
}

void DeviceThreads::end_step() {
  for (int d = 0; d < session_.who.span; ++d)
    posted_[static_cast<size_t>(d)] +=
        static_cast<uint32_t>(ops_of(d).size()) + (d == device_of(last()) ? 2 : 1);
}

// A stage's slot is free again when the last stage is done with the batch that used it: nothing
// reads that batch afterwards.
void DeviceThreads::begin_test(int stage, int64_t batch) {
  if (stage > 0) wait_for_test(stage - 1, batch);
  if (const int64_t there = session_.same_slot_before(stage, batch); there >= 0)
    wait_for_test(last(), there);
}

void DeviceThreads::end_test(int stage, int64_t batch) {
  record(*done(shared_, stage, turn_of(batch), false));
}

void DeviceThreads::end_evaluation(int64_t batches) {
  for (int s = 0; s <= last(); ++s)
    posted_[static_cast<size_t>(device_of(s))] += static_cast<uint32_t>(batches);
}

void DeviceThreads::wait_for_test(int stage, int64_t batch) {
  if (has(stage)) return;
  const int device = device_of(stage);
  wait_for(device, static_cast<uint32_t>(session_.test_parts_until(stage, batch)),
           *done(of(device), stage, turn_of(batch), false));
}

}  // namespace dpt
