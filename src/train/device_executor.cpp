#include "train/device_executor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "backend/cuda/kernels/update.h"
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

int states_of(const Session& s) {
  const auto names = s.optimizer->states(s.spec.optimizer.settings, s.cycles_momentum());
  return static_cast<int>(
      std::ranges::count_if(names, [](const std::string& name) { return !name.empty(); }));
}

int64_t rows_of(const std::vector<ShardRows>& micro) { return micro[0].rows.count(); }

}  // namespace

DeviceExecutor::Needs DeviceExecutor::needs(const Session& s) {
  const size_t stored = s.layout.stored * sizeof(float);
  return {.weights = s.layout.total * sizeof(float),
          .gradients = (s.batches->accumulate() > 1 ? 2 : 1) * stored,
          .states = static_cast<size_t>(states_of(s)) * s.layout.trainable * sizeof(float),
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
      stream_(api_->make_stream()) {
  const Needs n = needs(session_);
  const size_t stored = session_.layout.stored * sizeof(float);
  const auto micro = static_cast<size_t>(session_.batches->accumulate());
  const auto device = [&](size_t bytes) {
    return cuda::Memory(*api_, MemoryKind::device, std::max<size_t>(bytes, 64));
  };
  weights_ = device(n.weights);
  gradients_ = device(stored);
  if (micro > 1) more_ = device(stored);
  states_ = device(n.states);
  activations_ = device(n.activations);
  sums_ = device(most_sums(session_));
  step_ = device(sizeof(Host));
  losses_ = device(micro * sizeof(double));
  power_ = device(sizeof(double));
  const auto pinned = [&](size_t bytes) { return cuda::Memory(*api_, MemoryKind::pinned, bytes); };
  // Behind the step, the first sample of each micro-batch.
  host_ = pinned(sizeof(Host) + micro * sizeof(int64_t));
  back_ = pinned(std::max(sizeof(StepState), 3 * sizeof(double)));
  context_ = std::make_unique<cuda::DeviceContext>(*api_, *stream_,
                                                   &reinterpret_cast<Host*>(step_.data())->state);
  context_->tf32 = session_.tf32;
  bind();
  const auto most = [](size_t bytes) { return (bytes + 255) / 256 * 256; };
  input_bytes_ = most(input_bytes_);
  target_bytes_ = most(target_bytes_);
  inputs_ = pinned(micro * input_bytes_);
  targets_ = pinned(micro * target_bytes_);
  upload();
}

DeviceExecutor::~DeviceExecutor() = default;

void DeviceExecutor::bind() {
  const auto add = [&](What what, const std::map<GroupRows, Program>& programs,
                       std::span<const Part> parts) {
    const DeviceBinding::Memory memory{weights_.data(),
                                       what == train_more ? more_.data() : gradients_.data(),
                                       activations_.data(), sums_.data()};
    for (const auto& [rows, program] : programs) {
      bindings_[what].push_back(std::make_unique<DeviceBinding>(program, memory, *context_, parts));
      const Graph& graph = program.graph;
      input_bytes_ = std::max(input_bytes_, graph[graph.input].desc.bytes());
      target_bytes_ = std::max(target_bytes_, graph[graph.target].desc.bytes());
    }
  };
  add(train, session_.programs, kTrained);
  if (session_.batches->accumulate() > 1) add(train_more, session_.programs, kTrained);
  add(test, session_.test_programs, kTested);
  const size_t stored = session_.layout.stored;
  context_->reserve(sizeof(double) * static_cast<size_t>(cuda::PartialSums<cuda::PowerTerm>::blocks(
                                         static_cast<int64_t>(stored))));
  workspace_ = cuda::Memory(*api_, MemoryKind::device, context_->workspace_bytes());
  context_->workspace = workspace_.data();
}

// What of the buffers nobody writes is 0: the gaps between parameters.
void DeviceExecutor::upload() {
  const size_t state_bytes = session_.layout.trainable * sizeof(float);
  const cuda::Memory host(*api_, MemoryKind::pinned, weights_.bytes() + states_.bytes());
  std::memcpy(host.data(), buffers_.weights(), session_.layout.total * sizeof(float));
  for (int i = 0; i < states_of(session_); ++i)
    std::memcpy(host.data() + weights_.bytes() + static_cast<size_t>(i) * state_bytes,
                buffers_.state(i), state_bytes);
  stream_->copy(weights_.data(), host.data(), weights_.bytes());
  stream_->copy(states_.data(), host.data() + weights_.bytes(), states_.bytes());
  stream_->fill(gradients_.data(), 0, gradients_.bytes());
  if (more_.data() != nullptr) stream_->fill(more_.data(), 0, more_.bytes());
  stream_->synchronise();
}

void DeviceExecutor::finish() {
  const size_t state_bytes = session_.layout.trainable * sizeof(float);
  const cuda::Memory host(*api_, MemoryKind::pinned, weights_.bytes() + states_.bytes());
  stream_->copy(host.data(), weights_.data(), weights_.bytes());
  stream_->copy(host.data() + weights_.bytes(), states_.data(), states_.bytes());
  stream_->synchronise();
  std::memcpy(buffers_.weights(), host.data(), session_.layout.total * sizeof(float));
  for (int i = 0; i < states_of(session_); ++i)
    std::memcpy(buffers_.state(i),
                host.data() + weights_.bytes() + static_cast<size_t>(i) * state_bytes, state_bytes);
}

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
  const Rows rows = micro[0].rows;
  const auto order =
      input.order.subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count()));
  std::byte* const to = inputs_.data() + number * input_bytes_;
  const Taken taken(ahead, input.batch, static_cast<int>(number), {0, 1}, team_);
  if (feeder.input().dtype == DType::i32)
    feeder.inputs(order, reinterpret_cast<int32_t*>(to));
  else
    feeder.inputs(order, reinterpret_cast<float*>(to),
                  {static_cast<uint64_t>(session_.spec.seed), input.epoch}, taken.bytes());
  feed_targets(feeder, micro, number, input.order);
}

void DeviceExecutor::feed_targets(const Feeder& feeder, const Micro& micro, size_t number,
                                  std::span<const uint32_t> order) {
  const Rows rows = micro[0].rows;
  const auto mine =
      order.subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count()));
  std::byte* const to = targets_.data() + number * target_bytes_;
  if (feeder.target().dtype == DType::i32)
    feeder.targets(mine, reinterpret_cast<int32_t*>(to));
  else
    feeder.targets(mine, reinterpret_cast<float*>(to));
}

// Copies that a binding's part begins with.
void DeviceExecutor::enqueue_feed(DeviceBinding& b, size_t number) {
  const Graph& graph = b.program().graph;
  auto* const on_device = reinterpret_cast<Host*>(step_.data());
  const auto copy = [&](ValueId v, const void* from) {
    const TensorView to = b.view(v);
    if (to.data != nullptr) stream_->copy(to.data, from, to.desc.bytes());
  };
  copy(graph.input, inputs_.data() + number * input_bytes_);
  copy(graph.target, targets_.data() + number * target_bytes_);
  copy(graph.divisor, &on_device->divisor);
  if (graph.scale != kNoValue) copy(graph.scale, &on_device->scale);
  stream_->copy(&on_device->state.first_sample,
                host_.data() + sizeof(Host) + number * sizeof(int64_t), sizeof(int64_t));
}

void DeviceExecutor::fill_host(const StepInput& input, double divisor) {
  auto& host = *reinterpret_cast<Host*>(host_.data());
  host = {.state = {.seed = static_cast<uint64_t>(session_.spec.seed),
                    .step = input.number,
                    .loss_scale = input.scale},
          .divisor = static_cast<float>(divisor),
          .scale = static_cast<float>(input.scale)};
  auto* const first = reinterpret_cast<int64_t*>(host_.data() + sizeof(Host));
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
  stream_->copy(step_.data(), host_.data(), sizeof(Host));
  for (size_t m = 0; m < micro.size(); ++m) {
    DeviceBinding& b = binding(micro[m], m == 0 ? train : train_more);
    enqueue_feed(b, m);
    for (const Part part : {Part::forward, Part::loss, Part::backward}) b.run(part);
    stream_->copy(losses_.data() + m * sizeof(double), b.view(b.program().graph.loss).data,
                  sizeof(double));
    if (m > 0)
      launch(*stream_,
             cuda::AddTo{reinterpret_cast<float*>(gradients_.data()),
                         reinterpret_cast<const float*>(more_.data())},
             static_cast<int64_t>(session_.layout.stored));
  }
  enqueue_judgement(micro.size());
  enqueue_update(*input.update);
  stream_->copy(back_.data(), &reinterpret_cast<Host*>(step_.data())->state, sizeof(StepState));
}

void DeviceExecutor::enqueue_judgement(size_t micro_batches) {
  const ClipSpec& clip = session_.spec.clip;
  const bool looks = clip.max_norm.has_value() || session_.scaler.on;
  const auto elements = static_cast<int64_t>(session_.layout.stored);
  const double norm_type = std::isinf(clip.norm_type) ? 0 : clip.norm_type;
  auto* const partial = reinterpret_cast<double*>(workspace_.data());
  auto* const power = reinterpret_cast<double*>(power_.data());
  const cuda::PowerTerm term{reinterpret_cast<const float*>(gradients_.data()), norm_type,
                             elements};
  const auto sum = [&]<class Combine>(Combine) {
    using Partial = cuda::PartialSums<cuda::PowerTerm, Combine>;
    const int64_t blocks = Partial::blocks(elements);
    launch(*stream_, Partial{term, partial, elements}, blocks);
    launch(*stream_, cuda::TotalOf<Combine>{partial, nullptr, power, blocks}, 1);
  };
  if (looks && norm_type == 0)
    sum(cuda::Larger{});
  else if (looks)
    sum(cuda::Plus{});
  launch(*stream_,
         cuda::Judge{reinterpret_cast<const double*>(losses_.data()),
                     static_cast<int64_t>(micro_batches), looks ? power : nullptr, context_->state,
                     norm_type, clip.max_norm.value_or(0), session_.scaler.on},
         1);
}

void DeviceExecutor::enqueue_update(const OptimizerStep& step) {
  const auto trainable = static_cast<int64_t>(session_.layout.trainable);
  const bool pure = session_.precision.level == PrecisionPolicy::Level::pure;
  cuda::UpdateBuffers buffers{context_->state,
                              reinterpret_cast<float*>(weights_.data()),
                              {},
                              reinterpret_cast<const float*>(gradients_.data()),
                              static_cast<float>(session_.spec.clip.value.value_or(0)),
                              !pure                                    ? 0
                              : session_.precision.half == DType::bf16 ? 1
                                                                       : 2};
  const auto names =
      session_.optimizer->states(session_.spec.optimizer.settings, session_.cycles_momentum());
  for (size_t i = 0, next = 0; i < names.size(); ++i)  // a place without a name has no buffer
    if (!names[i].empty())
      buffers.states[i] =
          reinterpret_cast<float*>(states_.data()) + next++ * session_.layout.trainable;
  std::visit(
      [&](const auto& s) {
        using Formula = decltype(rounded<float>(s));
        const auto* formula =
            reinterpret_cast<const Formula*>(reinterpret_cast<Host*>(step_.data())->formula);
        launch(*stream_, cuda::Update<Formula>{formula, buffers}, trainable);
      },
      step);
}

// Where the targets decide what the loss is divided by: before anything else.
double DeviceExecutor::sum_target_weights(const StepInput& input) {
  double sum = 0;
  for (size_t m = 0; m < input.rows->micro.size(); ++m) {
    DeviceBinding& b = binding(input.rows->micro[m], train);
    const TensorView target = b.view(b.program().graph.target);
    stream_->copy(target.data, targets_.data() + m * target_bytes_, target.desc.bytes());
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
