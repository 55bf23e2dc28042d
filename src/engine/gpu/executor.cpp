#include "engine/gpu/executor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <utility>

#include "base/units.h"
#include "engine/gpu/nonfinite_search.h"
#include "engine/step_numbers.h"

namespace dpt {

using cuda::MemoryKind;
using cuda::StepState;

namespace {

// Bytes of the largest micro-batch's input or target.
size_t largest_input(const CompiledModel& model, ValueId Graph::*value) {
  size_t most = 0;
  for (const auto* programs : {&model.programs, &model.test_programs})
    for (const auto& [rows, p] : *programs)
      most = std::max(most, p.graph[p.graph.*value].desc.bytes());
  return most;
}

}  // namespace

GpuExecutor::Needs GpuExecutor::needs(const Session& s, int device) {
  const GpuShare& share = s.shares.gpus[static_cast<size_t>(device)];
  const size_t stored = share.trained() * sizeof(float);
  const auto replicas = static_cast<size_t>(s.devices.topology.replicas());
  return {.weights = share.elements() * sizeof(float),
          .gradients =
              (s.batches.train->accumulate() > 1 ? 2 : 1) * stored + GpuExchange::bytes(s, share),
          .states = GpuUpdate::state_bytes(s.settings, s.devices, s.model, share),
          .activations = s.devices.topology.devices_per_replica > 1
                             ? s.layout.arenas.bytes_on(device) / replicas
                             : GpuBindingTable::activation_bytes(s.model)};
}

GpuExecutor::GpuExecutor(const Session& session, const Buffers& buffers, const GpuTeam& gpus,
                         std::unique_ptr<cuda::DeviceApi> api, const Samples& samples,
                         PlanStepClock* clock, Link* link)
    : session_(session),
      gpus_(gpus),
      share_(session.shares.gpus[static_cast<size_t>(gpus.device())]),
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
      worker_{.session = session,
              .buffers = buffers,
              .gpus = gpus_,
              .shard = gpus_.replica(),
              .share = share_,
              .context = context_,
              .stages = StagesOfDevice(session.model.graph, gpus_.device()),
              .wait = [this] { wait(); }},
      launch_queue_(context_, worker_.shard, session.parameter_groups.groups.size(), wait_for_,
                    gpus_.several_hosts()),
      update_(session, worker_.shard, share_, context_, launch_queue_),
      weights_(worker_, update_),
      graphs_(*stream_) {
  context_.tf32 = session_.precision.tf32;
  if (link) worker_.hosts = &hosts_.emplace(session, buffers, share_, *link);
  if (session_.devices.topology.devices_per_replica > 1)
    stages_ = make_gpu_stages(session_, context_, gpus_);
  bindings_.emplace(worker_, update_, stages_.get());
  if (session_.devices.topology.replicas() > 1) make_exchange();
  step_.emplace(worker_, GpuStep::Uses{.bindings = *bindings_,
                                       .update = update_,
                                       .launch_queue = launch_queue_,
                                       .exchange = exchange_.get(),
                                       .gather = gather_.get(),
                                       .stages = stages_.get()});
  make_batch_inputs(samples);  // last: data sets get the rest of the GPU's memory
  upload_state(0, GradientScaler(session_.precision.scaler).state());
  update_.upload(worker_.buffers);
}

void GpuExecutor::make_exchange() {
  exchange_ = std::make_unique<GpuExchange>(session_, worker_.buffers, share_, context_, gpus_,
                                            update_, stages_ ? stages_->calls() : nullptr);
  communicator_ = exchange_->communicator();
  if (session_.devices.topology.loss_device >= 0)
    gather_ = std::make_unique<GpuGather>(session_, context_, gpus_, *exchange_,
                                          bindings_->memory(ProgramKind::train, 0));
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
  const Topology& topology = s.devices.topology;
  const GpuWorkers all{.first = static_cast<int>(topology.workers_of_host(topology.host).begin),
                       .total = topology.total_workers()};
  const GpuTeam gpus(team, worker, topology.devices_per_replica, access, all);
  const int gpu = s.devices.gpu_of_worker.at(static_cast<size_t>(gpus.number()));
  return std::make_unique<GpuExecutor>(s, buffers, gpus, access.open(gpu), samples, clock,
                                       access.link);
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
  new (host.data()) StepState{.seed = static_cast<uint64_t>(session_.settings.spec.seed),
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
      .loader = *session_.data.loader,
      .context = context_,
      .micro_batches = static_cast<size_t>(session_.batches.train->accumulate()),
      .input_bytes = worker_.stages.has_first() ? largest_input(session_.model, &Graph::input) : 0,
      .target_bytes = worker_.stages.has_last() ? largest_input(session_.model, &Graph::target) : 0,
      .seed = static_cast<uint64_t>(session_.settings.spec.seed),
      .prefetch = samples.train,
      .team = gpus_.team(),
      .shard = worker_.shard,
      .wait_for = wait_for_};
  const bool has_inputs = request.input_bytes + request.target_bytes > 0;
  // All GPUs use the same kind of input: the two kinds capture steps at different times.
  const auto resident = [&](const BatchLoader& loader) {
    return gpus_.largest(has_inputs && !fits_on_gpu(loader, free_bytes) ? 1 : 0) == 0;
  };
  const bool here = resident(*session_.data.loader);
  if (has_inputs) batch_input_ = make_batch_input(request, here, free_bytes);
  step_->set_input(batch_input_.get());
  if (!session_.data.test) return;
  const bool test_here = resident(*session_.data.test_loader);
  if (has_inputs)
    test_batch_input_ = make_batch_input({.loader = *session_.data.test_loader,
                                          .context = context_,
                                          .micro_batches = 1,
                                          .input_bytes = request.input_bytes,
                                          .target_bytes = request.target_bytes,
                                          .seed = request.seed,
                                          .prefetch = samples.test,
                                          .team = gpus_.team(),
                                          .shard = worker_.shard,
                                          .wait_for = wait_for_},
                                         test_here, free_bytes);
  evaluation_.emplace(worker_, *bindings_, graphs_, test_batch_input_.get(), stages_.get(),
                      samples.test, wait_for_);
}

bool GpuExecutor::captures(const StepRows& rows) const {
  return session_.devices.captures_steps() && graphs_.warm(shape_of(rows));
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
  StepShape shape;
  size_t together = 1;
  bool begun = false;
  stop_ = 0;
  pause_ = false;
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
    begin_step();
    if (!std::exchange(begun, true) && batch_input_) batch_input_->begin(input.order, input.epoch);
    if (StepShape its = shape_of(*input.rows); its != shape) {
      launch_all();
      shape = std::move(its);
      together = steps_together(*input.rows);
    }
    gathered_.push_back({.input = input,
                         .rows = *input.rows,
                         .divisor = natural_divisor(session_.model, input.rows->samples)});
    if (gathered_.size() == together) launch_all();
    if (graphs_.set_warm(shape)) shape.clear();
  }
  launch_all();
  while (!launch_queue_.empty()) complete(loop, true);
}

// Barriers detect missing ranks and make Ctrl-C known to all.
void GpuExecutor::begin_step() {
  gpus_.begin_step();
  for (const PlanStep& s : session_.plan.begin)
    if (s.op == PlanOp::barrier) gpus_.barrier();
  if (!gpus_.several_hosts()) stop_ = gpus_.agreed_stop();
}

LaunchQueue::Decisions GpuExecutor::own_decisions(std::span<const LaunchQueue::Step> steps) const {
  const auto asks_pause = [](const LaunchQueue::Step& s) { return s.input.asks_pause; };
  return {.stop = static_cast<double>(gpus_.team().agreed_stop()),
          .pause = std::ranges::any_of(steps, asks_pause) ? 1.0 : 0.0};
}

void GpuExecutor::launch(StepLoop& loop, std::span<const LaunchQueue::Step> steps) {
  for (const PlanStep& s : session_.plan.launch)
    if (s.op == PlanOp::barrier) gpus_.barrier();
  if (launch_queue_.full()) complete(loop, true);
  const size_t slot = batch_input_ ? batch_input_->make(steps[0].input) : 0;
  // With a loss scale, submitted steps may still be skipped, so the next update's number is not
  // known yet: send the formulas of all possible ones.
  const bool unsure = session_.precision.scaler.on;
  const auto under_way = static_cast<int64_t>(launch_queue_.steps());
  const int64_t first = loop.updates() + (unsure ? 0 : under_way);
  formulas_.clear();
  for (int64_t n = 0; n < std::ssize(steps) + (unsure ? under_way : 0); ++n) {
    const std::span<const OptimizerStep> of_groups = loop.update(first + n);
    formulas_.insert(formulas_.end(), of_groups.begin(), of_groups.end());
  }
  launch_queue_.submit(steps, first, formulas_, own_decisions(steps));
  if (captures(steps[0].rows))
    stream_->launch(graph(steps[0].rows, slot, steps.size()));
  else
    for (size_t i = 0; i < steps.size(); ++i) step_->enqueue(steps[i].rows, i, slot);
  if (batch_input_) batch_input_->enqueued(slot);
  launch_queue_.enqueue_reports(step_->decisions());
  // With several GPUs, all have to complete a step at the same time.
  while (gpus_.alone() && !launch_queue_.empty() && complete(loop, false)) continue;
}

cuda::CapturedGraph& GpuExecutor::graph(const StepRows& rows, size_t slot, size_t steps) {
  return graphs_.get(shape_of(rows), slot, steps,
                     [&](size_t step) { step_->enqueue(rows, step, slot); });
}

// Completes the oldest launch. False: it is not done yet.
bool GpuExecutor::complete(StepLoop& loop, bool wait) {
  const auto completed = launch_queue_.complete(wait);
  if (!completed) return false;
  take(completed->decisions);
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

// What the first worker of all hosts has asked. A host's team, too, learns of a stop.
void GpuExecutor::take(const LaunchQueue::Decisions& decisions) {
  pause_ = pause_ || decisions.pause != 0;
  if (stop_ != 0 || decisions.stop == 0) return;
  stop_ = static_cast<int>(decisions.stop);
  if (gpus_.worker() == 0) Team(gpus_.team()).stop_like_other_host(stop_);
}

StepResult GpuExecutor::result(const StepRows& rows, const cuda::StepReport& report) const {
  check_data(report.bad);
  int64_t rank0_samples = 0;
  for (const MicroBatch& micro : rows.micro) rank0_samples += micro[0].rows.count();
  const bool weighted = session_.model.divisor == Divisor::targets;
  StepResult out = result_of(
      session_, {.loss = report.loss,
                 .divisor = report.divisor,
                 .rank0_loss = report.first_loss,
                 .rank0_divisor = weighted ? report.first_weight
                                           : natural_divisor(session_.model, rank0_samples)});
  out.norm = report.norm;
  out.overflowed =
      session_.precision.scaler.on && report.skip != 0;  // of the loss or of the gradients
  out.stop = stop_;
  out.pause = pause_;
  return out;
}

Evaluation GpuExecutor::evaluate(const BatchesDone& done) {
  weights_.share_running_statistics();
  return evaluation_->run(done);
}

NonFiniteReport GpuExecutor::find_non_finite(const StepInput& input) {
  wait();  // later steps may have been launched already
  update_.download_weights(worker_.buffers);
  return GpuNonFiniteSearch(worker_, *bindings_, batch_input_.get(), stages_.get(), input)
      .run(input);
}

// With `shard: optimizer`, each GPU has the averages of its own pieces and gets the others'
// weights.
void GpuExecutor::swap_average() {
  gpus_.barrier();
  update_.swap_average();
  step_->share_weights();
  wait();
  gpus_.barrier();
}

// The buffers of all hosts but the first hold nothing that a run starts from.
void GpuExecutor::receive_start() {
  if (!gpus_.several_hosts()) return;
  worker_.among_hosts([](GpuHostExchange& e) { e.send_start(); });
  update_.upload(worker_.buffers);
}

void GpuExecutor::gather() {
  update_.download_states(worker_.buffers);
  weights_.gather();
  worker_.among_hosts([](GpuHostExchange& e) { e.gather_states(); });
}

void GpuExecutor::finish() {
  weights_.gather();
  graphs_.clear();  // their NCCL calls belong to the communicator
  communicator_ = nullptr;
  if (exchange_) exchange_->finish();
  if (stages_) stages_->finish();
  gpus_.barrier();
}

}  // namespace dpt
