#include "train/device_update.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cuda/kernels/update.h"

namespace dpt {

using cuda::MemoryKind;

namespace {

size_t one_state(const Session& s) { return s.layout.trainable * sizeof(float); }

}  // namespace

size_t DeviceUpdate::state_bytes(const Session& s) {
  return static_cast<size_t>(s.states()) * one_state(s);
}

size_t DeviceUpdate::losses_of_step(const Session& s) {
  return static_cast<size_t>(s.batches->accumulate()) *
         static_cast<size_t>(s.who.loss_device >= 0 ? s.who.shards : 1);
}

DeviceUpdate::DeviceUpdate(const Session& session, cuda::DeviceContext& context,
                           const DeviceFlights& flights)
    : session_(session),
      context_(context),
      flights_(flights),
      kind_(session.optimizer->step(session.spec.optimizer.settings, 1,
                                    session.optimizer->lr(session.spec.optimizer.settings), {})) {
  const auto device = [&](size_t bytes) {
    return cuda::Memory(context.api, MemoryKind::device, std::max<size_t>(bytes, 64));
  };
  const size_t stored = session_.layout.stored * sizeof(float);
  const auto micro = static_cast<size_t>(session_.batches->accumulate());
  weights_ = device(session_.layout.total * sizeof(float));
  gradients_ = device(stored);
  if (micro > 1) more_ = device(stored);
  states_ = device(state_bytes(session_));
  losses_ = device(2 * losses_of_step(session) * sizeof(double));
  power_ = device(sizeof(double));
  context_.reserve(sizeof(double) * static_cast<size_t>(cuda::PartialSums<cuda::PowerTerm>::blocks(
                                        static_cast<int64_t>(session_.layout.stored))));
}

// What of the buffers nobody writes is 0: the gaps between parameters.
void DeviceUpdate::upload(const Buffers& buffers) {
  const cuda::Memory host(context_.api, MemoryKind::pinned, weights_.bytes() + states_.bytes());
  std::memcpy(host.data(), buffers.weights(), session_.layout.total * sizeof(float));
  std::byte* const states = host.data() + weights_.bytes();
  for (int i = 0; i < session_.states(); ++i)
    std::memcpy(states + static_cast<size_t>(i) * one_state(session_), buffers.state(i),
                one_state(session_));
  context_.stream.copy(weights_.data(), host.data(), weights_.bytes());
  context_.stream.copy(states_.data(), states, states_.bytes());
  context_.stream.fill(gradients_.data(), 0, gradients_.bytes());
  if (more_.data() != nullptr) context_.stream.fill(more_.data(), 0, more_.bytes());
  context_.stream.synchronise();
}

void DeviceUpdate::download(const Buffers& buffers) {
  const cuda::Memory host(context_.api, MemoryKind::pinned, weights_.bytes() + states_.bytes());
  const std::byte* const states = host.data() + weights_.bytes();
  context_.stream.copy(host.data(), weights_.data(), weights_.bytes());
  context_.stream.copy(host.data() + weights_.bytes(), states_.data(), states_.bytes());
  context_.stream.synchronise();
  std::memcpy(buffers.weights(), host.data(), session_.layout.total * sizeof(float));
  for (int i = 0; i < session_.states(); ++i)
    std::memcpy(buffers.state(i), states + static_cast<size_t>(i) * one_state(session_),
                one_state(session_));
}

void DeviceUpdate::read(size_t begin, size_t end, float* to) {
  const cuda::Memory host(context_.api, MemoryKind::pinned, (end - begin) * sizeof(float));
  context_.stream.copy(host.data(), weights() + begin * sizeof(float), host.bytes());
  context_.stream.synchronise();
  std::memcpy(to, host.data(), host.bytes());
}

void DeviceUpdate::write(size_t begin, size_t end, const float* from) {
  const cuda::Memory host(context_.api, MemoryKind::pinned, (end - begin) * sizeof(float));
  std::memcpy(host.data(), from, host.bytes());
  context_.stream.copy(weights() + begin * sizeof(float), host.data(), host.bytes());
  context_.stream.synchronise();
}

void DeviceUpdate::keep_loss(size_t which, const std::byte* loss) {
  if (loss != nullptr)
    context_.stream.copy(losses() + which, loss, sizeof(double));
  else
    context_.stream.fill(losses() + which, 0, sizeof(double));
}

void DeviceUpdate::add_gradients(size_t begin, size_t end) {
  launch(context_.stream,
         cuda::AddTo{gradient() + begin, reinterpret_cast<const float*>(more_.data()) + begin},
         static_cast<int64_t>(end - begin));
}

void DeviceUpdate::no_gradients() {
  if (gradient_bytes() > 0) context_.stream.fill(gradients_.data(), 0, gradient_bytes());
}

template <class Combine>
void DeviceUpdate::sum_powers(Combine, double norm_type) {
  using Partial = cuda::PartialSums<cuda::PowerTerm, Combine>;
  const auto elements = static_cast<int64_t>(session_.layout.stored);
  const cuda::PowerTerm term{reinterpret_cast<const float*>(gradients_.data()), norm_type,
                             elements};
  auto* const partial = reinterpret_cast<double*>(context_.workspace);
  const int64_t blocks = Partial::blocks(elements);
  launch(context_.stream, Partial{term, partial, elements}, blocks);
  launch(context_.stream,
         cuda::TotalOf<Combine>{partial, nullptr, reinterpret_cast<double*>(power_.data()), blocks},
         1);
}

void DeviceUpdate::judge(size_t step) {
  const ClipSpec& clip = session_.spec.clip;
  const ScalerSettings& scaler = session_.scaler;
  const bool looks = clip.max_norm.has_value() || scaler.on;
  const double norm_type = std::isinf(clip.norm_type) ? 0 : clip.norm_type;
  if (looks && norm_type == 0)
    sum_powers(cuda::Larger{}, norm_type);
  else if (looks)
    sum_powers(cuda::Plus{}, norm_type);
  const auto* const power = reinterpret_cast<const double*>(power_.data());
  launch(context_.stream,
         cuda::Judge{losses(),
                     static_cast<int64_t>(losses_of_step(session_)),
                     looks ? power : nullptr,
                     context_.state,
                     flights_.first_update(),
                     flights_.report(step),
                     norm_type,
                     clip.max_norm.value_or(0),
                     scaler.on,
                     {scaler.growth_factor, scaler.backoff_factor, scaler.growth_interval}},
         1);
}

void DeviceUpdate::update() {
  const bool pure = session_.precision.level == PrecisionPolicy::Level::pure;
  cuda::UpdateBuffers buffers{context_.state,
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
        launch(
            context_.stream,
            cuda::Update<Formula>{flights_.formulas<Formula>(), DeviceFlights::kFormulas, buffers},
            static_cast<int64_t>(session_.layout.trainable));
      },
      kind_);
}

}  // namespace dpt
