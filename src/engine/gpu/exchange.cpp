#include "engine/gpu/exchange.h"

#include <algorithm>
#include <numeric>

#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/pointwise.h"
#include "base/fail.h"

namespace dpt {

size_t GpuExchange::bytes(const Session& s, const GpuShare& share) {
  return s.devices.exchange.compress && s.devices.topology.replicas() > 1
             ? share.trained() * sizeof(uint16_t)
             : 0;
}

GpuExchange::GpuExchange(const Session& session, const Buffers& buffers, const GpuShare& share,
                         cuda::DeviceContext& context, GpuTeam& gpus, GpuUpdate& update,
                         cuda::Stream* calls)
    : session_(session),
      buckets_(session.plan.buckets[static_cast<size_t>(share.device())]),
      buffers_(buffers),
      share_(share),
      context_(context),
      gpus_(gpus),
      update_(update) {
  halves_ = cuda::DeviceBuffer(context.api, cuda::MemoryKind::device, bytes(session, share));
  if (session.devices.sums_on_host()) {
    if (session.devices.exchange.compress)
      compressed_.emplace(*session.devices.exchange.compress, buffers_);
    const auto pinned = [&](size_t bytes) {
      return cuda::DeviceBuffer(context.api, cuda::MemoryKind::pinned, bytes);
    };
    gradients_ = pinned(update.gradient_bytes());
    terms_ = pinned(std::max(2 * GpuUpdate::losses_of_step(session.devices, session.batches),
                             static_cast<size_t>(session.devices.topology.replicas())) *
                    sizeof(double));
    made_ = context.api.make_event();
    return;
  }
  all_ = gpus.join_peers(context.api);
  if (calls == nullptr) own_stream_ = context.api.make_urgent_stream();
  stream_ = calls ? calls : own_stream_.get();
  made_ = context.api.make_event();
  summed_ = context.api.make_event();
  size_t sums = 0;  // of one shard
  for (const auto* programs : {&session.model.programs, &session.model.last_programs})
    for (const auto& [rows, program] : *programs) sums = std::max(sums, program.sum_bytes);
  if (session.settings.spec.sync_batch_norm && sums > 0)
    zeros_ = cuda::DeviceBuffer(context.api, cuda::MemoryKind::device, sums);
}

void GpuExchange::record() {
  context_.stream.record(*made_);
  recorded_ = true;
}

void GpuExchange::wait_for_recorded() {
  if (recorded_) stream_->wait(*made_);
  recorded_ = false;
}

void GpuExchange::call(const PlanStep& step, const Terms& terms) {
  wait_for_recorded();
  switch (step.quantity) {
    case Quantity::gradients:
      return sum(buckets_[static_cast<size_t>(step.bucket)]);
    case Quantity::squares:  // the others' elements are 0
      return all_->all_reduce(*stream_, update_.norm_partials(),
                              static_cast<size_t>(session_.devices.topology.replicas()),
                              DType::f64);
    case Quantity::weights:
      return gather_weights();
    default:
      return start_terms(terms);
  }
}

void GpuExchange::wait() {
  stream_->record(*summed_);
  context_.stream.wait(*summed_);
}

void GpuExchange::sum(const Bucket& bucket) {
  const auto& half = session_.devices.exchange.compress;
  if (!half)
    return sum_in_place(reinterpret_cast<std::byte*>(update_.gradient() + bucket.begin),
                        bucket.count(), DType::f32);
  write_halves(*stream_, bucket);
  sum_in_place(halves(bucket.begin), bucket.count(), *half);
  read_halves(*stream_, own_piece(session_.devices, bucket, gpus_.replica()));
}

// Sums over replicas; with `shard: optimizer` this GPU only receives the sum of its piece.
void GpuExchange::sum_in_place(std::byte* data, size_t count, DType dtype) {
  if (!session_.devices.exchange.shard_states)
    return all_->all_reduce(*stream_, data, count, dtype);
  all_->reduce_scatter(*stream_, data,
                       count / static_cast<size_t>(session_.devices.topology.replicas()), dtype);
}

void GpuExchange::write_halves(cuda::Stream& stream, const Bucket& e) {
  const auto convert = [&]<class Half>(Half) {
    launch(stream,
           cuda::Convert<float, Half>{update_.gradient() + e.begin,
                                      reinterpret_cast<Half*>(halves(e.begin))},
           static_cast<int64_t>(e.count()));
  };
  *session_.devices.exchange.compress == DType::bf16 ? convert(cuda::Bf16{}) : convert(cuda::F16{});
}

void GpuExchange::read_halves(cuda::Stream& stream, const Bucket& e) {
  const auto convert = [&]<class Half>(Half) {
    launch(stream,
           cuda::Convert<Half, float>{reinterpret_cast<const Half*>(halves(e.begin)),
                                      update_.gradient() + e.begin},
           static_cast<int64_t>(e.count()));
  };
  *session_.devices.exchange.compress == DType::bf16 ? convert(cuda::Bf16{}) : convert(cuda::F16{});
}

void GpuExchange::sum_now(std::byte* data, const TensorDesc& desc) {
  if (data == nullptr) {
    data = zeros_.data();
    context_.stream.fill(data, 0, desc.bytes());
  }
  record();
  wait_for_recorded();
  all_->all_reduce(*stream_, data, desc.bytes() / sizeof(double), DType::f64);
  wait();
}

void GpuExchange::pass_now(std::span<const Transfer> all) {
  if (all.empty()) return;
  record();
  wait_for_recorded();
  cuda::CallGroup group(*all_);
  for (const Transfer& t : all)
    t.sends ? all_->send(*stream_, t.value.data, t.value.desc.bytes(), t.other)
            : all_->receive(*stream_, t.value.data, t.value.desc.bytes(), t.other);
  group.end();
  wait();
}

// The second half, and the decisions behind it, get the values of the first rank alone.
void GpuExchange::start_terms(const Terms& terms) {
  double* const first = terms.data + terms.count;
  const auto of_first_rank = [&](double* to, const double* from, size_t count) {
    if (gpus_.replica() == 0)
      stream_->copy(to, from, count * sizeof(double));
    else
      stream_->fill(to, 0, count * sizeof(double));
  };
  of_first_rank(first, terms.data, terms.count);
  const size_t decisions = terms.decisions ? LaunchQueue::kDecisions : 0;
  if (decisions > 0) of_first_rank(first + terms.count, terms.decisions, decisions);
  all_->all_reduce(*stream_, terms.data, 2 * terms.count + decisions, DType::f64);
}

void GpuExchange::gather_weights() {
  const auto gpus = static_cast<size_t>(session_.devices.topology.replicas());
  cuda::CallGroup group(*all_);
  for (const Bucket& b : buckets_)
    all_->all_gather(*stream_, update_.weights() + b.begin * sizeof(float), b.count() / gpus,
                     DType::f32);
  group.end();
}

namespace {

double ShardResult::*field_of(Quantity what) {
  return what == Quantity::loss ? &ShardResult::loss : &ShardResult::weight;
}

}  // namespace

void GpuExchange::copy_to_host(Quantity what, const Terms& terms) {
  if (what == Quantity::gradients) return bring_gradients();
  if (what == Quantity::weights) return bring_weights();
  auto* const host = reinterpret_cast<double*>(terms_.data());
  context_.stream.copy(host, terms.data, terms.count * sizeof(double));
  wait_for_gpu();
  buffers_.result(steps_, gpus_.replica()).*field_of(what) =
      std::accumulate(host, host + terms.count, 0.0);
}

void GpuExchange::sum_on_host(Quantity what, const Terms& terms) {
  if (what == Quantity::gradients) {
    const auto replicas = static_cast<size_t>(session_.devices.topology.replicas());
    const auto own = static_cast<size_t>(gpus_.replica());
    const size_t trained = share_.trained();
    return sum_shards(trained * own / replicas, trained * (own + 1) / replicas);
  }
  auto* const host = reinterpret_cast<double*>(terms_.data());
  std::fill_n(host, 2 * terms.count, 0.0);
  host[0] = sum_over_shards(session_.devices.topology.shards,
                            [&](int s) { return buffers_.result(steps_, s).*field_of(what); });
  host[terms.count] = buffers_.result(steps_, 0).*field_of(what);
}

void GpuExchange::copy_from_host(Quantity what, const Terms& terms) {
  if (what == Quantity::gradients) return fetch_gradients();
  if (what == Quantity::weights) return fetch_weights();
  context_.stream.copy(terms.data, terms_.data(), 2 * terms.count * sizeof(double));
}

void GpuExchange::wait_for_gpu() {
  context_.stream.record(*made_);
  gpus_.wait(*made_);
}

// Copies the sums that this GPU needs from shared memory.
void GpuExchange::fetch_gradients() {
  auto* const pinned = reinterpret_cast<float*>(gradients_.data());
  // Elements that are not copied below must not keep 16-bit numbers of bring_gradients().
  if (compressed_) std::fill_n(pinned, share_.trained(), 0.0F);
  for (const Bucket& piece :
       own_pieces(session_.devices, session_.model, share_, gpus_.replica())) {
    share_.each(piece.begin, piece.end, [&](size_t from, size_t at, size_t count) {
      std::copy_n(buffers_.gradient(0) + from, count, pinned + at);
    });
    context_.stream.copy(update_.gradient() + piece.begin, pinned + piece.begin,
                         piece.count() * sizeof(float));
  }
}

void GpuExchange::bring_gradients() {
  const size_t trained = share_.trained();
  if (compressed_) write_halves(context_.stream, {0, trained});
  const std::byte* const made =
      compressed_ ? halves_.data() : reinterpret_cast<std::byte*>(update_.gradient());
  context_.stream.copy(gradients_.data(), made, compressed_ ? halves_.bytes() : gradients_.bytes());
  wait_for_gpu();
  const auto copy = [&](const auto* from, auto* to) {
    share_.each(0, trained, [&](size_t flat, size_t at, size_t count) {
      std::copy_n(from + at, count, to + flat);
    });
  };
  if (compressed_)
    copy(reinterpret_cast<const uint16_t*>(gradients_.data()), buffers_.halves(gpus_.replica()));
  else
    copy(reinterpret_cast<const float*>(gradients_.data()), buffers_.gradient(gpus_.replica()));
}

// The sum is stored in shard 0's gradients.
void GpuExchange::sum_shards(size_t begin, size_t end) {
  std::vector<float*> gradients;
  for (int s = 0; s < session_.devices.topology.shards; ++s)
    gradients.push_back(buffers_.gradient(s));
  share_.each(begin, end, [&](size_t from, size_t, size_t count) {
    if (compressed_)
      compressed_->sum({from, from + count}, gradients[0] + from);
    else
      sum_tree(std::span<float* const>(gradients), from, from + count);
  });
}

void GpuExchange::share_norm_partials_on_hosts() {
  double* const norm_partials = update_.norm_partials();
  auto* const terms = reinterpret_cast<double*>(terms_.data());
  context_.stream.copy(terms, norm_partials + gpus_.replica(), sizeof(double));
  wait_for_gpu();
  std::ranges::copy(gpus_.all(terms[0]), terms);
  context_.stream.copy(norm_partials, terms,
                       static_cast<size_t>(session_.devices.topology.replicas()) * sizeof(double));
}

// Each replica's pieces of the weights go to shared memory, then all of them to each GPU.
void GpuExchange::bring_weights() {
  auto* const pinned = reinterpret_cast<float*>(gradients_.data());
  for (const Bucket& piece :
       own_pieces(session_.devices, session_.model, share_, gpus_.replica())) {
    const size_t at = piece.begin * sizeof(float), n = piece.count() * sizeof(float);
    context_.stream.copy(gradients_.data() + at, update_.weights() + at, n);
    wait_for_gpu();
    share_.each(piece.begin, piece.end, [&](size_t from, size_t here, size_t count) {
      std::copy_n(pinned + here, count, buffers_.weights() + from);
    });
  }
}

void GpuExchange::fetch_weights() {
  auto* const pinned = reinterpret_cast<float*>(gradients_.data());
  share_.each(0, share_.trained(), [&](size_t from, size_t here, size_t count) {
    std::copy_n(buffers_.weights() + from, count, pinned + here);
  });
  context_.stream.copy(update_.weights(), gradients_.data(), gradients_.bytes());
}

void GpuExchange::finish() {
  if (!all_) return;
  gpus_.begin_step();
  all_->finish();
  all_.reset();
}

}  // namespace dpt
