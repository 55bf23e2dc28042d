#include "engine/gpu/executor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/fail.h"
#include "base/stderr.h"
#include "base/units.h"

namespace dpt {

using cuda::MemoryKind;
using cuda::StepState;

namespace {

constexpr Part kTrained[] = {Part::prologue, Part::forward, Part::loss, Part::backward};
constexpr Part kTested[] = {Part::prologue, Part::forward, Part::loss};

size_t most_activations(const Session& s) {
  size_t most = 64;
  for (const auto* programs : {&s.programs, &s.test_programs})
    for (const auto& [rows, p] : *programs) most = std::max(most, p.arena[0].kept);
  return most;
}

size_t most_sums(const Session& s) {
  size_t most = 64;
  for (const auto* programs : {&s.programs, &s.test_programs})
    for (const auto& [rows, p] : *programs) most = std::max(most, p.sum_bytes);
  return most;
}

// Bytes of the largest micro-batch's input or target.
size_t largest_input(const Session& s, ValueId Graph::*value) {
  size_t most = 0;
  for (const auto* programs : {&s.programs, &s.test_programs})
    for (const auto& [rows, p] : *programs)
      most = std::max(most, p.graph[p.graph.*value].desc.bytes());
  return most;
}

size_t micro_batches(const Session& s) { return static_cast<size_t>(s.batches->accumulate()); }

// The key of captured steps: for each micro-batch and shard, the row count, the offset and the
// first sample. It covers the shards of all GPUs, so that all GPUs capture at the same steps.
std::vector<int64_t> shape_of(const StepRows& rows) {
  std::vector<int64_t> out;
  for (const auto& micro : rows.micro)
    for (size_t s = 0; s < micro.size(); ++s)
      out.insert(out.end(),
                 {micro[s].rows.count(), micro[s].rows.begin - rows.micro[0][s].rows.begin,
                  micro[s].first_sample});
  return out;
}

}  // namespace

GpuExecutor::Needs GpuExecutor::needs(const Session& s, int device) {
  const GpuShare share(s, device);
  const size_t stored = share.trained() * sizeof(float);
  const auto replicas = static_cast<size_t>(s.topology.replicas());
  return {
      .weights = share.elements() * sizeof(float),
      .gradients = (s.batches->accumulate() > 1 ? 2 : 1) * stored + GpuExchange::bytes(s, share),
      .states = GpuUpdate::state_bytes(s, share),
      .activations = s.topology.devices_per_replica > 1 ? Arenas::bytes_on(s, device) / replicas
                                                        : most_activations(s)};
}

GpuExecutor::GpuExecutor(const Session& session, const Buffers& buffers, const GpuTeam& gpus,
                         std::unique_ptr<cuda::DeviceApi> api, const Samples& samples,
                         PlanStepClock* clock)
    : session_(session),
      buffers_(buffers),
      gpus_(gpus),
      shard_(gpus.replica()),
      share_(session, gpus.device()),
      api_(std::move(api)),
      clock_(clock),
      stream_(api_->make_stream()),
      done_(gpus.alone() ? nullptr : api_->make_event()),
      wait_for_([this](cuda::Event& event) {
        try {
          gpus_.wait(event, [this] {
            if (communicator_) communicator_->check();
            if (stages_) stages_->check();
          });
        } catch (...) {  // abort first: freeing memory waits for the GPU
          give_up();
          throw;
        }
      }),
      state_(*api_, MemoryKind::device, sizeof(StepState)),
      context_(*api_, *stream_, reinterpret_cast<StepState*>(state_.data())),
      launch_queue_(context_, shard_, session.parameter_groups.groups.size(), wait_for_),
      update_(session, gpus_.replica(), share_, context_, launch_queue_),
      activations_(*api_, MemoryKind::device,
                   session.topology.devices_per_replica > 1 ? 64 : most_activations(session)),
      sums_(*api_, MemoryKind::device, most_sums(session)),
      target_weights_(*api_, MemoryKind::device, 2 * micro_batches(session) * sizeof(double)),
      micro_batches_(micro_batches(session)),
      test_prefetch_(samples.test) {
  context_.tf32 = session_.tf32;
  if (session_.topology.devices_per_replica > 1)
    stages_ = make_gpu_stages(session_, context_, gpus_);
  bind();
  if (session_.topology.replicas() > 1) make_exchange();
  make_batch_inputs(samples);  // last: data sets get the rest of the GPU's memory
  upload_state(0, GradientScaler(session_.scaler).state());
  update_.upload(buffers_);
}

void GpuExecutor::make_exchange() {
  exchange_ = std::make_unique<GpuExchange>(session_, buffers_, share_, context_, gpus_, update_,
                                            stages_ ? stages_->calls() : nullptr);
  communicator_ = exchange_->communicator();
  if (session_.topology.loss_device >= 0)
    gather_ = std::make_unique<GpuGather>(session_, context_, gpus_, *exchange_, memory(train, 0));
  if (stages_ || !exchange_->by_nccl()) return;
  for (const auto* programs : {&session_.programs, &session_.last_programs})
    for (const auto& [rows, program] : *programs)
      made_after_[&program] = made_after(program, session_.plan.buckets[0]);
}

GpuExecutor::~GpuExecutor() { give_up(); }

// Aborts all calls that may wait for other GPUs. Both communicators are aborted at once, since
// kernels of one may be queued behind those of the other.
void GpuExecutor::give_up() noexcept {
  graphs_.clear();
  communicator_ = nullptr;
  if (stages_) stages_->give_up();
  const std::array<cuda::Communicator*, 2> all = {stages_ ? stages_->communicator() : nullptr,
                                                  exchange_ ? exchange_->communicator() : nullptr};
  api_->abort(all);
}

std::unique_ptr<GpuExecutor> make_gpu_executor(const Session& s, const Buffers& buffers, Team team,
                                               int worker, const GpuAccess& access,
                                               const StepExecutor::Samples& samples,
                                               PlanStepClock* clock) {
  const int gpu = s.gpu_of_worker.at(static_cast<size_t>(worker));
  return std::make_unique<GpuExecutor>(
      s, buffers, GpuTeam(team, worker, s.topology.devices_per_replica, access), access.open(gpu),
      samples, clock);
}

// Waits for everything enqueued on the stream.
void GpuExecutor::wait() {
  if (!done_) return stream_->synchronise();
  stream_->record(*done_);
  wait_for_(*done_);
}

void GpuExecutor::resume(int64_t updates, const GradientScaler::State& scaler) {
  upload_state(updates, scaler);
}

// Sets the state that steps start from.
void GpuExecutor::upload_state(int64_t updates, const GradientScaler::State& scaler) {
  const cuda::DeviceBuffer host(*api_, MemoryKind::pinned, sizeof(StepState));
  new (host.data()) StepState{.seed = static_cast<uint64_t>(session_.spec.seed),
                              .loss_scale = scaler.scale,
                              .updates = updates,
                              .growth_tracker = scaler.growth_tracker};
  stream_->copy(context_.state, host.data(), sizeof(StepState));
  stream_->synchronise();
}

// Bytes of GPU memory available for data sets. Call it when everything else is allocated.
size_t GpuExecutor::room_for_data() {
  constexpr size_t kSpare = 256 * kMiB;  // for what libraries load
  // NCCL takes its buffers when a communicator is joined, those for sends at the first one.
  constexpr size_t kSends = 512 * kMiB;
  const bool sends = gather_ ? exchange_->by_nccl() : stages_ && stages_->communicator();
  const size_t spare = kSpare + (sends ? kSends : 0);
  // Replicas or stages on the same GPU share its memory. sharing() contains a barrier, so all have
  // allocated everything else.
  const auto sharing = static_cast<size_t>(gpus_.sharing(api_->properties().bus_id));
  const size_t share = api_->free_memory() / sharing;
  return share > spare ? share - spare : 0;
}

void GpuExecutor::make_batch_inputs(const Samples& samples) {
  size_t free_bytes = room_for_data();
  const BatchInputRequest request{
      .loader = *session_.loader,
      .context = context_,
      .micro_batches = micro_batches(session_),
      .input_bytes = has_stage(0) ? largest_input(session_, &Graph::input) : 0,
      .target_bytes = has_stage(last_stage()) ? largest_input(session_, &Graph::target) : 0,
      .seed = static_cast<uint64_t>(session_.spec.seed),
      .prefetch = samples.train,
      .team = gpus_.team(),
      .shard = shard_,
      .wait_for = wait_for_};
  const bool has_inputs = request.input_bytes + request.target_bytes > 0;
  // All GPUs use the same kind of input: the two kinds capture steps at different times.
  const auto resident = [&](const BatchLoader& loader) {
    return gpus_.largest(has_inputs && !fits_on_gpu(loader, free_bytes) ? 1 : 0) == 0;
  };
  const bool here = resident(*session_.loader);
  if (has_inputs) batch_input_ = make_batch_input(request, here, free_bytes);
  if (!session_.test) return;
  const bool test_here = resident(*session_.test_loader);
  if (has_inputs)
    test_batch_input_ = make_batch_input({.loader = *session_.test_loader,
                                          .context = context_,
                                          .micro_batches = 1,
                                          .input_bytes = request.input_bytes,
                                          .target_bytes = request.target_bytes,
                                          .seed = request.seed,
                                          .prefetch = samples.test,
                                          .team = gpus_.team(),
                                          .shard = shard_,
                                          .wait_for = wait_for_},
                                         test_here, free_bytes);
  prepare_evaluation();
}

GpuExecutor::ProgramKind GpuExecutor::program_kind(size_t chunk) const {
  if (chunk == 0) return train;
  const bool last = !session_.last_programs.empty() && chunk + 1 == micro_batches(session_);
  return last ? train_last : train_more;
}

size_t GpuExecutor::slot_count(ProgramKind kind) const {
  return kind == train || kind == train_last ? 1 : static_cast<size_t>(session_.slot_count());
}

GpuBinding::BufferPointers GpuExecutor::memory(ProgramKind kind, size_t chunk) const {
  const bool later = kind == train_more || kind == train_last;
  GpuBinding::BufferPointers out{.share = &share_,
                                 .weights = update_.weights(),
                                 .gradients = update_.gradients(later),
                                 .activations = {activations_.data()},
                                 .scratch = {nullptr},
                                 .sums = sums_.data()};
  if (!stages_) return out;
  out.activations.clear();
  out.scratch.clear();
  for (int s = 0; s <= last_stage(); ++s) {
    out.activations.push_back(stages_->kept(s, chunk, kind == train_last));
    out.scratch.push_back(stages_->scratch(s));
  }
  out.stages = stages_->own();
  out.copy = [this](const Copy& way) { return stages_->copy(way); };
  return out;
}

void GpuExecutor::bind() {
  context_.make_plans([&] {
    const auto ask = [&](ProgramKind kind, const std::map<ShardGroupRows, Program>& programs,
                         std::span<const Part> parts) {
      const std::vector<int> stages = memory(kind, 0).stages;
      for (const auto& [rows, program] : programs)
        GpuBinding::ask_for_plans(program, stages, parts);
    };
    ask(train, session_.programs, kTrained);
    if (micro_batches(session_) > 1) ask(train_last, session_.last_programs, kTrained);
    ask(test, session_.test_programs, kTested);
  });
  const auto add = [&](ProgramKind kind, const std::map<ShardGroupRows, Program>& programs,
                       std::span<const Part> parts) {
    for (size_t chunk = 0; chunk < slot_count(kind); ++chunk)
      for (const auto& [rows, program] : programs)
        bindings_[kind].push_back(
            std::make_unique<GpuBinding>(program, memory(kind, chunk), context_, parts));
  };
  add(train, session_.programs, kTrained);
  if (micro_batches(session_) > 1) {
    add(train_more, session_.programs, kTrained);
    add(train_last, session_.last_programs, kTrained);
  }
  add(test, session_.test_programs, kTested);
  workspace_ = cuda::DeviceBuffer(*api_, MemoryKind::device, context_.workspace_bytes());
  context_.workspace = workspace_.data();
  if (shard_ == 0)
    for (const std::string& line : context_.not_as_planned())
      print_stderr("not as planned: {}\n", line);
}

GpuBinding& GpuExecutor::binding(const Micro& micro, ProgramKind kind, size_t chunk) {
  const size_t per_slot = bindings_[kind].size() / slot_count(kind);
  for (size_t i = 0; i < per_slot; ++i) {
    GpuBinding& b = *bindings_[kind][chunk % slot_count(kind) * per_slot + i];
    if (b.program().rows.shards[0] == own(micro).rows.count()) return b;
  }
  fail(Fault::failed, "no program for {} samples", own(micro).rows.count());
}

double GpuExecutor::natural_divisor(int64_t samples) const {
  if (session_.divisor == Divisor::one || session_.divisor == Divisor::targets) return 1;
  return static_cast<double>(samples * session_.terms_per_sample);
}

bool GpuExecutor::captures(const StepRows& rows) const {
  return session_.captures_steps() && warm_.contains(shape_of(rows));
}

size_t GpuExecutor::steps_together(const StepRows& rows) {
  if (!captures(rows)) return 1;
  const bool made_one_by_one = batch_input_ && batch_input_->slots() > 1;
  const size_t nodes = made_one_by_one ? LaunchQueue::kMostNodes : graph(rows, 0, 1).nodes();
  // The same number on all GPUs, or one would wait for a step that another has not launched.
  return LaunchQueue::together(static_cast<size_t>(gpus_.largest(static_cast<int64_t>(nodes))));
}

void GpuExecutor::run(StepLoop& loop) {
  gathered_.clear();
  std::vector<int64_t> shape;
  size_t together = 1;
  bool begun = false;
  stop_ = 0;
  const auto launch_all = [&] {
    std::span<const LaunchQueue::Step> rest = gathered_;
    while (!rest.empty()) {
      const size_t n = std::min(together, std::bit_floor(rest.size()));
      launch(loop, rest.first(n));
      rest = rest.subspan(n);
    }
    gathered_.clear();
  };
  StepInput input;
  while (stop_ == 0 && loop.next(input)) {
    gpus_.begin_step();
    // Barriers, which detect missing ranks and make Ctrl-C known to all.
    for (const PlanStep& s : session_.plan.begin)
      if (s.op == PlanOp::barrier) gpus_.barrier();
    stop_ = gpus_.agreed_stop();
    if (!std::exchange(begun, true) && batch_input_) batch_input_->begin(input.order, input.epoch);
    if (std::vector<int64_t> its = shape_of(*input.rows); its != shape) {
      launch_all();
      shape = std::move(its);
      together = steps_together(*input.rows);
    }
    gathered_.push_back(
        {.input = input, .rows = *input.rows, .divisor = natural_divisor(input.rows->samples)});
    if (gathered_.size() == together) launch_all();
    if (warm_.insert(shape).second) shape.clear();
  }
  launch_all();
  while (!launch_queue_.empty()) complete(loop, true);
}

void GpuExecutor::launch(StepLoop& loop, std::span<const LaunchQueue::Step> steps) {
  if (launch_queue_.full()) complete(loop, true);
  const size_t slot = batch_input_ ? batch_input_->make(steps[0].input) : 0;
  // With a loss scale, submitted steps may still be skipped, so the next update's number is not
  // known yet: send the formulas of all possible ones.
  const bool unsure = session_.scaler.on;
  const auto under_way = static_cast<int64_t>(launch_queue_.steps());
  const int64_t first = loop.updates() + (unsure ? 0 : under_way);
  formulas_.clear();
  for (int64_t n = 0; n < std::ssize(steps) + (unsure ? under_way : 0); ++n) {
    const std::span<const OptimizerStep> of_groups = loop.update(first + n);
    formulas_.insert(formulas_.end(), of_groups.begin(), of_groups.end());
  }
  launch_queue_.submit(steps, first, formulas_);
  if (captures(steps[0].rows))
    stream_->launch(graph(steps[0].rows, slot, steps.size()));
  else
    for (size_t i = 0; i < steps.size(); ++i) enqueue(steps[i].rows, i, slot);
  if (batch_input_) batch_input_->enqueued(slot);
  launch_queue_.enqueue_reports();
  // With several GPUs, all have to complete a step at the same time.
  while (gpus_.alone() && !launch_queue_.empty() && complete(loop, false)) continue;
}

cuda::CapturedGraph& GpuExecutor::graph(const StepRows& rows, size_t slot, size_t steps) {
  std::vector<int64_t> key = shape_of(rows);
  key.insert(key.end(), {train, static_cast<int64_t>(slot), static_cast<int64_t>(steps)});
  return captured(std::move(key), [&] {
    for (size_t i = 0; i < steps; ++i) enqueue(rows, i, slot);
  });
}

cuda::CapturedGraph& GpuExecutor::captured(std::vector<int64_t> key,
                                           const std::function<void()>& enqueue_all) {
  std::unique_ptr<cuda::CapturedGraph>& graph = graphs_[std::move(key)];
  if (graph) return *graph;
  stream_->begin_capture();
  try {
    enqueue_all();
  } catch (...) {
    stream_->cancel_capture();
    throw;
  }
  graph = stream_->end_capture();
  return *graph;
}

// Completes the oldest launch. False: it is not done yet.
bool GpuExecutor::complete(StepLoop& loop, bool wait) {
  const auto completed = launch_queue_.complete(wait);
  if (!completed) return false;
  for (size_t i = 0; i < completed->steps.size(); ++i) {
    const StepInput& input = completed->steps[i].input;
    if (clock_) {
      clock_->mark(PlanStepClock::compute);
      clock_->step_ends(input.rows->samples);
    }
    loop.done(input, result(*input.rows, completed->reports[i]));
  }
  return true;
}

// True if rank 0's own loss has to be reported.
bool GpuExecutor::reports_first() const {
  return session_.topology.ranks > 1 && session_.topology.replicas() > 1 &&
         session_.divisor != Divisor::one && session_.spec.log.loss == "rank0";
}

StepResult GpuExecutor::result(const StepRows& rows, const cuda::StepReport& report) const {
  check_data(report.bad);
  StepResult out;
  out.loss = out.rank0_loss = report.loss;
  out.weight = report.divisor;
  out.norm = report.norm;
  out.empty = session_.takes_empty_steps && report.divisor == 0;
  out.finite = out.empty || std::isfinite(report.loss);
  out.overflowed = session_.scaler.on && report.skip != 0;
  out.stop = stop_;
  if (reports_first()) {
    int64_t samples = 0;
    for (const Micro& micro : rows.micro) samples += micro[0].rows.count();
    const double weight =
        session_.divisor == Divisor::targets ? report.first_weight : natural_divisor(samples);
    out.rank0_loss = report.first_loss * report.divisor / weight;
  }
  return out;
}

void GpuExecutor::check_data(int32_t bad) {
  if (bad != 0)
    fail(Fault::data,
         "a class or token in this batch is out of the model's range; run with `device: cpu` to "
         "find the sample");
}

}  // namespace dpt
