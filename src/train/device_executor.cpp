#include "train/device_executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/fail.h"
#include "graph/operator.h"

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

DeviceFeed::Sizes most_fed(const Session& s) {
  DeviceFeed::Sizes most;
  for (const auto* programs : {&s.programs, &s.test_programs})
    for (const auto& [rows, p] : *programs) {
      most.input = std::max(most.input, p.graph[p.graph.input].desc.bytes());
      most.target = std::max(most.target, p.graph[p.graph.target].desc.bytes());
    }
  return most;
}

size_t micro_batches(const Session& s) { return static_cast<size_t>(s.batches->accumulate()); }

int64_t rows_of(const std::vector<ShardRows>& micro) { return micro[0].rows.count(); }

}  // namespace

DeviceExecutor::Needs DeviceExecutor::needs(const Session& s) {
  const size_t stored = s.layout.stored * sizeof(float);
  return {.weights = s.layout.total * sizeof(float),
          .gradients = (s.batches->accumulate() > 1 ? 2 : 1) * stored,
          .states = DeviceUpdate::state_bytes(s),
          .activations = most_activations(s)};
}

DeviceExecutor::DeviceExecutor(const Session& session, const Buffers& buffers, Team team,
                               std::unique_ptr<cuda::DeviceApi> api, const Samples& samples,
                               StageClock* clock)
    : session_(session),
      buffers_(buffers),
      team_(team),
      api_(std::move(api)),
      samples_(samples),
      clock_(clock),
      stream_(api_->make_stream()),
      step_(*api_, MemoryKind::device, sizeof(DeviceStep)),
      // Behind the step, the first sample of each micro-batch.
      host_(*api_, MemoryKind::pinned,
            sizeof(DeviceStep) + micro_batches(session) * sizeof(int64_t)),
      back_(*api_, MemoryKind::pinned, std::max(sizeof(StepState), 3 * sizeof(double))),
      context_(*api_, *stream_, &step_on_device()->state),
      update_(session, context_, step_on_device()),
      activations_(*api_, MemoryKind::device, most_activations(session)),
      sums_(*api_, MemoryKind::device, most_sums(session)),
      feed_(*api_, *stream_, most_fed(session), micro_batches(session)) {
  context_.tf32 = session_.tf32;
  bind();
  update_.upload(buffers_);
}

void DeviceExecutor::bind() {
  const auto add = [&](What what, const std::map<GroupRows, Program>& programs,
                       std::span<const Part> parts) {
    const DeviceBinding::Memory memory{update_.weights(), update_.gradients(what == train_more),
                                       activations_.data(), sums_.data()};
    for (const auto& [rows, program] : programs)
      bindings_[what].push_back(std::make_unique<DeviceBinding>(program, memory, context_, parts));
  };
  add(train, session_.programs, kTrained);
  if (micro_batches(session_) > 1) add(train_more, session_.programs, kTrained);
  add(test, session_.test_programs, kTested);
  workspace_ = cuda::Memory(*api_, MemoryKind::device, context_.workspace_bytes());
  context_.workspace = workspace_.data();
}

void DeviceExecutor::finish() { update_.download(buffers_); }

DeviceBinding& DeviceExecutor::binding(const Micro& micro, What what) {
  for (const auto& b : bindings_[what])
    if (b->program().rows.shards[0] == rows_of(micro)) return *b;
  fail(Fault::failed, "no program for {} samples", rows_of(micro));
}

double DeviceExecutor::natural_divisor(int64_t samples) const {
  if (session_.divisor == Divisor::one || session_.divisor == Divisor::targets) return 1;
  return static_cast<double>(samples * session_.terms_per_sample);
}

void DeviceExecutor::feed(const Feeder& feeder, const Micro& micro, size_t number,
                          const StepInput& input, Ahead* ahead) {
  feed_.fill(feeder, micro, number, input, static_cast<uint64_t>(session_.spec.seed), ahead, team_);
}

// Copies that a binding's part begins with.
void DeviceExecutor::enqueue_feed(DeviceBinding& b, size_t number) {
  const Graph& graph = b.program().graph;
  feed_.enqueue(b, number);
  const auto copy = [&](ValueId v, const float* from) {
    const TensorView to = b.view(v);
    if (to.data != nullptr) stream_->copy(to.data, from, sizeof(float));
  };
  copy(graph.divisor, &step_on_device()->divisor);
  if (graph.scale != kNoValue) copy(graph.scale, &step_on_device()->scale);
  stream_->copy(&step_on_device()->state.first_sample,
                host_.data() + sizeof(DeviceStep) + number * sizeof(int64_t), sizeof(int64_t));
}

void DeviceExecutor::fill_host(const StepInput& input, double divisor) {
  auto& host = *reinterpret_cast<DeviceStep*>(host_.data());
  host = {.state = {.seed = static_cast<uint64_t>(session_.spec.seed),
                    .step = input.number,
                    .loss_scale = input.scale},
          .divisor = static_cast<float>(divisor),
          .scale = static_cast<float>(input.scale)};
  auto* const first = reinterpret_cast<int64_t*>(host_.data() + sizeof(DeviceStep));
  for (size_t m = 0; m < input.rows->micro.size(); ++m)
    first[m] = input.rows->micro[m][0].first_sample;
  if (input.update == nullptr) return;
  std::visit(
      [&](const auto& s) {
        const auto formula = rounded<float>(s);
        static_assert(sizeof formula <= sizeof host.formula);
        std::memcpy(host.formula, &formula, sizeof formula);
      },
      *input.update);
}

StepResult DeviceExecutor::step(const StepInput& input) {
  const StepRows& rows = *input.rows;
  for (size_t m = 0; m < rows.micro.size(); ++m)
    feed(*session_.feeder, rows.micro[m], m, input, samples_.train);
  const double divisor = session_.divisor == Divisor::targets ? sum_target_weights(input)
                                                              : natural_divisor(rows.samples);
  fill_host(input, divisor);
  std::vector<int64_t> key;
  for (const Micro& micro : rows.micro) key.push_back(rows_of(micro));
  std::unique_ptr<cuda::CapturedGraph>& graph = graphs_[key];
  if (!graph) {
    stream_->begin_capture();
    enqueue(input);
    graph = stream_->end_capture();
  }
  stream_->launch(*graph);
  stream_->synchronise();
  check_data();
  const auto& state = *reinterpret_cast<const StepState*>(back_.data());
  StepResult out;
  out.loss = out.rank0_loss = state.loss;
  out.weight = divisor;
  out.norm = state.norm;
  out.finite = std::isfinite(state.loss);
  out.overflowed = session_.scaler.on && state.skip != 0;
  out.stop = team_.agreed_stop();
  if (clock_) {
    clock_->mark(StageClock::compute);
    clock_->step_ends(rows.samples);
  }
  return out;
}

void DeviceExecutor::enqueue(const StepInput& input) {
  const auto& micro = input.rows->micro;
  stream_->copy(step_.data(), host_.data(), sizeof(DeviceStep));
  for (size_t m = 0; m < micro.size(); ++m) {
    DeviceBinding& b = binding(micro[m], m == 0 ? train : train_more);
    enqueue_feed(b, m);
    for (const Part part : {Part::forward, Part::loss, Part::backward}) b.run(part);
    update_.add(m, b.view(b.program().graph.loss).data);
  }
  update_.judge(micro.size());
  update_.update(*input.update);
  stream_->copy(back_.data(), context_.state, sizeof(StepState));
}

// Where the targets decide what the loss is divided by: before anything else.
double DeviceExecutor::sum_target_weights(const StepInput& input) {
  double sum = 0;
  for (size_t m = 0; m < input.rows->micro.size(); ++m) {
    DeviceBinding& b = binding(input.rows->micro[m], train);
    feed_.enqueue_target(b, m);
    b.run(Part::prologue);
    sum += read_double(b, b.program().graph.target_weight);
  }
  return sum;
}

double DeviceExecutor::read_double(const DeviceBinding& b, ValueId v) {
  stream_->copy(back_.data(), b.view(v).data, sizeof(double));
  stream_->synchronise();
  return *reinterpret_cast<const double*>(back_.data());
}

void DeviceExecutor::check_data() const {
  if (reinterpret_cast<const StepState*>(back_.data())->bad != 0)
    fail(Fault::data,
         "a class or a token of this batch is outside of what the model has; `device: cpu` names "
         "the sample");
}

}  // namespace dpt
