#include "engine/gpu/update.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/pointwise.h"
#include "backend/cuda/kernels/update.h"
#include "base/units.h"

namespace dpt {

using cuda::MemoryKind;

namespace {

size_t elements_of(const std::vector<Bucket>& pieces) {
  size_t out = 0;
  for (const Bucket& p : pieces) out += p.count();
  return out;
}

size_t partials_of(const std::vector<Bucket>& pieces) {
  int64_t out = 0;
  for (const Bucket& p : pieces)
    out += cuda::PartialSums<cuda::PowerTerm>::blocks(static_cast<int64_t>(p.count()));
  return static_cast<size_t>(out);
}

}  // namespace

size_t GpuUpdate::state_bytes(const RunSettings& settings, const Devices& devices,
                              const CompiledModel& model, const GpuShare& share) {
  return static_cast<size_t>(settings.states()) *
         elements_of(own_pieces(devices, model, share, 0)) * sizeof(float);
}

size_t GpuUpdate::losses_of_step(const Devices& devices, const SessionBatches& batches) {
  return static_cast<size_t>(batches.train->accumulate()) *
         static_cast<size_t>(devices.topology.loss_device >= 0 ? devices.topology.shards : 1);
}

GpuUpdate::GpuUpdate(const Session& session, int replica, const GpuShare& share,
                     cuda::DeviceContext& context, const LaunchQueue& launch_queue)
    : session_(session),
      share_(share),
      context_(context),
      launch_queue_(launch_queue),
      kind_(session.settings.optimizer->step(
          session.settings.spec.optimizer.settings, 1,
          session.settings.optimizer->lr(session.settings.spec.optimizer.settings), {})),
      pieces_(own_pieces(session.devices, session.model, share, replica)),
      elements_(elements_of(pieces_)),
      runs_(runs_of_groups()),
      replica_(replica),
      first_of_host_(session.devices.topology.shards_of_host(session.devices.topology.host).begin ==
                     replica) {
  const auto device = [&](size_t bytes) {
    return cuda::DeviceBuffer(context.api, MemoryKind::device, std::max<size_t>(bytes, 64));
  };
  constexpr size_t kMostPinned = 32 * kMiB;
  const size_t stored = gradient_bytes();
  const auto micro = static_cast<size_t>(session_.batches.train->accumulate());
  weights_ = device(share.elements() * sizeof(float));
  gradients_ = device(stored);
  if (micro > 1) more_ = device(stored);
  states_ = device(state_bytes(session_.settings, session_.devices, session_.model, share));
  host_ = cuda::DeviceBuffer(
      context.api, MemoryKind::pinned,
      std::clamp<size_t>(std::max(weights_.bytes(), elements_ * sizeof(float)), 64, kMostPinned));
  losses_ = device(2 * losses_of_step(session.devices, session.batches) * sizeof(double) +
                   (launch_queue.decisions() ? sizeof(LaunchQueue::Decisions) : 0));
  norm_total_ = device(sizeof(double));
  norm_partials_ = device(static_cast<size_t>(session.devices.topology.replicas() +
                                              session.devices.topology.devices_per_replica) *
                          sizeof(double));
  context_.reserve(sizeof(double) * partials_of(pieces_));
}

// Uploads elements [begin, end) of the share to `to`. Gaps between parameters, which f does not
// write, become 0.
template <class F>
void GpuUpdate::upload(float* to, size_t begin, size_t end, F f) {
  auto* const host = reinterpret_cast<float*>(host_.data());
  const size_t most = host_.bytes() / sizeof(float);
  for (size_t at = begin; at < end; at += most) {
    const size_t count = std::min(most, end - at);
    std::fill_n(host, count, 0.0F);
    share_.each(at, at + count,
                [&](size_t flat, size_t from, size_t n) { f(flat, host + (from - at), n); });
    context_.stream.copy(to + (at - begin), host, count * sizeof(float));
    context_.stream.synchronise();
  }
}

template <class F>
void GpuUpdate::download(const float* from, size_t begin, size_t end, F f) {
  auto* const host = reinterpret_cast<float*>(host_.data());
  const size_t most = host_.bytes() / sizeof(float);
  for (size_t at = begin; at < end; at += most) {
    const size_t count = std::min(most, end - at);
    context_.stream.copy(host, from + (at - begin), count * sizeof(float));
    context_.stream.synchronise();
    share_.each(at, at + count,
                [&](size_t flat, size_t here, size_t n) { f(flat, host + (here - at), n); });
  }
}

// Calls f(number of the state, its elements on the GPU, the piece of the share) for every piece
// that this GPU updates.
template <class F>
void GpuUpdate::each_state(F f) const {
  auto* at = reinterpret_cast<float*>(states_.data());
  for (int i = 0; i < session_.settings.states(); ++i)
    for (const Bucket& p : pieces_) {
      f(i, at, p);
      at += p.count();
    }
}

void GpuUpdate::upload(const Buffers& buffers) {
  write(0, share_.elements(), buffers.weights());
  each_state([&](int i, float* at, const Bucket& p) {
    upload(at, p.begin, p.end, [&](size_t flat, float* host, size_t count) {
      std::copy_n(buffers.state(i) + flat, count, host);
    });
  });
  context_.stream.fill(gradients_.data(), 0, gradients_.bytes());
  if (more_.data() != nullptr) context_.stream.fill(more_.data(), 0, more_.bytes());
  context_.stream.synchronise();
}

void GpuUpdate::download_weights(const Buffers& buffers) {
  if (first_of_host_) read(0, share_.elements(), buffers.weights());
}

void GpuUpdate::download_states(const Buffers& buffers) {
  if (replica_ != 0 && all_states()) return;
  each_state([&](int i, const float* at, const Bucket& p) {
    download(at, p.begin, p.end, [&](size_t flat, const float* host, size_t count) {
      std::copy_n(host, count, buffers.state(i) + flat);
    });
  });
}

void GpuUpdate::read(size_t begin, size_t end, float* flat) {
  const auto* const weights = reinterpret_cast<const float*>(weights_.data()) + begin;
  download(weights, begin, end, [&](size_t at, const float* host, size_t count) {
    std::copy_n(host, count, flat + at);
  });
}

void GpuUpdate::write(size_t begin, size_t end, const float* flat) {
  auto* const weights = reinterpret_cast<float*>(weights_.data()) + begin;
  upload(weights, begin, end,
         [&](size_t at, float* host, size_t count) { std::copy_n(flat + at, count, host); });
}

bool GpuUpdate::equal(size_t begin, size_t end, const float* flat) {
  bool same = true;
  const auto* const weights = reinterpret_cast<const float*>(weights_.data()) + begin;
  download(weights, begin, end, [&](size_t at, const float* host, size_t count) {
    same = same && std::memcmp(host, flat + at, count * sizeof(float)) == 0;
  });
  return same;
}

void GpuUpdate::keep_loss(size_t index, const std::byte* loss) {
  if (loss != nullptr)
    context_.stream.copy(losses() + index, loss, sizeof(double));
  else
    context_.stream.fill(losses() + index, 0, sizeof(double));
}

void GpuUpdate::add_gradients(size_t begin, size_t end) {
  launch(context_.stream,
         cuda::AddTo{gradient() + begin, reinterpret_cast<const float*>(more_.data()) + begin},
         static_cast<int64_t>(end - begin));
}

void GpuUpdate::no_gradients(size_t begin, size_t end) {
  if (begin < end) context_.stream.fill(gradient() + begin, 0, (end - begin) * sizeof(float));
}

void GpuUpdate::round_gradients() {
  const cuda::RoundToHalf round{*session_.devices.exchange.compress == DType::bf16};
  launch(context_.stream, cuda::Map<cuda::RoundToHalf, float>{round, gradient(), gradient()},
         static_cast<int64_t>(share_.trained()));
}

double GpuUpdate::norm_type() const {
  const double type = session_.settings.spec.clip.norm_type;
  return std::isinf(type) ? 0 : type;
}

// Calls f with the operation that combines two norm partials: the maximum or the sum.
template <class F>
void GpuUpdate::with_combine(F f) const {
  norm_type() == 0 ? f(cuda::Larger{}) : f(cuda::Plus{});
}

void GpuUpdate::measure() {
  if (!looks()) return;
  if (!all_states()) context_.stream.fill(norm_partials(), 0, norm_partials_.bytes());
  double* const own =
      all_states() ? device_norm_partials() + share_.device() : norm_partials() + replica_;
  auto* const partials = reinterpret_cast<double*>(context_.workspace);
  with_combine([&]<class Combine>(Combine) {
    using Partial = cuda::PartialSums<cuda::PowerTerm, Combine>;
    int64_t done = 0;
    for (const Bucket& p : pieces_) {
      const auto count = static_cast<int64_t>(p.count());
      const cuda::PowerTerm term{
          .x = gradient() + p.begin, .power = norm_type(), .elements = count};
      launch(context_.stream, Partial{term, partials + done, count}, Partial::blocks(count));
      done += Partial::blocks(count);
    }
    launch(context_.stream, cuda::TotalOf<Combine>{partials, nullptr, own, done}, 1);
  });
}

void GpuUpdate::join_pieces() {
  if (looks() && !all_states())
    combine(norm_partials(), session_.devices.topology.replicas(),
            device_norm_partials() + share_.device());
}

void GpuUpdate::combine(const double* norm_partials, int count, double* to) const {
  with_combine([&]<class Combine>(Combine) {
    launch(context_.stream, cuda::TotalOf<Combine>{norm_partials, nullptr, to, count}, 1);
  });
}

void GpuUpdate::decide_update(size_t step, const std::byte* loss) {
  const ClipSpec& clip = session_.settings.spec.clip;
  const ScalerSettings& scaler = session_.precision.scaler;
  const bool several = session_.devices.topology.devices_per_replica > 1;
  auto* const all = reinterpret_cast<double*>(norm_total_.data());
  if (looks() && several)
    combine(device_norm_partials(), session_.devices.topology.devices_per_replica, all);
  const double* const norm_partial = several ? all : device_norm_partials();
  launch(
      context_.stream,
      cuda::DecideUpdate{
          .losses = loss ? reinterpret_cast<const double*>(loss) : losses(),
          .micro_batches =
              loss ? 1 : static_cast<int64_t>(losses_of_step(session_.devices, session_.batches)),
          .norm_partial = looks() ? norm_partial : nullptr,
          .state = context_.state,
          .first_update = launch_queue_.first_update(),
          .report = launch_queue_.report(step),
          .norm_type = norm_type(),
          .max_norm = clip.max_norm.value_or(0),
          .scales = scaler.on,
          .rule = {scaler.growth_factor, scaler.backoff_factor, scaler.growth_interval},
          .takes_empty = session_.model.takes_empty_steps},
      1);
}

// With one group a run is a whole piece, else part of one; padding between parameters is in none.
std::vector<GpuUpdate::Run> GpuUpdate::runs_of_groups() const {
  const ParameterGroups& groups = session_.parameter_groups;
  std::vector<Run> out;
  size_t before = 0;  // elements of the pieces
  for (const Bucket& p : pieces_) {
    if (!groups.several()) {
      out.push_back({.begin = p.begin, .end = p.end, .state = before});
    } else {
      share_.each(p.begin, p.end, [&](size_t flat, size_t here, size_t count) {
        groups.each(flat, flat + count, [&](size_t begin, size_t end, int group) {
          const size_t at = here + (begin - flat);
          out.push_back({.begin = at,
                         .end = at + (end - begin),
                         .state = before + (at - p.begin),
                         .group = group});
        });
      });
    }
    before += p.count();
  }
  return out;
}

void GpuUpdate::update() {
  const bool pure = session_.precision.policy.level == PrecisionPolicy::Level::pure;
  const int half = !pure ? 0 : session_.precision.policy.half == DType::bf16 ? 1 : 2;
  const auto names = session_.settings.optimizer->states(session_.settings.spec.optimizer.settings,
                                                         session_.settings.cycles_momentum());
  for (const Run& run : runs_) {
    cuda::UpdateBuffers buffers{
        .state = context_.state,
        .weight = reinterpret_cast<float*>(weights_.data()) + run.begin,
        .states = {},
        .gradient = gradient() + run.begin,
        .clip_value = static_cast<float>(session_.settings.spec.clip.value.value_or(0)),
        .half = half};
    for (size_t i = 0, next = 0; i < names.size(); ++i)  // a state without a name has no buffer
      if (!names[i].empty()) buffers.states[i] = state_of(next++, run.state);
    std::visit(
        [&](const auto& s) {
          using Formula = decltype(rounded<float>(s));
          const auto groups = static_cast<int64_t>(launch_queue_.groups());
          launch(context_.stream,
                 cuda::Update<Formula>{
                     launch_queue_.formulas<Formula>() + run.group,
                     static_cast<int64_t>(LaunchQueue::kFormulas) * groups - run.group, buffers,
                     groups},
                 static_cast<int64_t>(run.end - run.begin));
        },
        kind_);
  }
  if (session_.settings.averages()) update_average(half);
}

void GpuUpdate::update_average(int half) {
  const std::optional<double>& decay = session_.settings.spec.ema;
  if (!decay && half == 0) return;  // the optimizer has averaged them
  size_t before = 0;                // elements of the pieces
  for (const Bucket& p : pieces_) {
    float* const average = state_of(static_cast<size_t>(session_.settings.average_state()), before);
    const auto count = static_cast<int64_t>(p.count());
    if (decay)
      launch(context_.stream,
             cuda::Average{.state = context_.state,
                           .average = average,
                           .weight = reinterpret_cast<float*>(weights_.data()) + p.begin,
                           .decay = *decay,
                           .half = half},
             count);
    else
      launch(context_.stream,
             cuda::Map<cuda::RoundToHalf, float>{cuda::RoundToHalf{half == 1}, average, average},
             count);
    before += p.count();
  }
}

void GpuUpdate::swap_average() {
  size_t before = 0;  // elements of the pieces
  for (const Bucket& p : pieces_) {
    launch(context_.stream,
           cuda::SwapElements{
               reinterpret_cast<float*>(weights_.data()) + p.begin,
               state_of(static_cast<size_t>(session_.settings.average_state()), before)},
           static_cast<int64_t>(p.count()));
    before += p.count();
  }
}

}  // namespace dpt
