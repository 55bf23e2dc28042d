#include "engine/gpu/exchange.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/pointwise.h"
#include "base/fail.h"

namespace dpt {

size_t GpuExchange::bytes(const Session& s, const GpuShare& share) {
  return s.exchange.compress && s.topology.replicas() > 1 ? share.trained() * sizeof(uint16_t) : 0;
}

GpuExchange::GpuExchange(const Session& session, const Buffers& buffers, const GpuShare& share,
                         cuda::DeviceContext& context, GpuTeam& gpus, GpuUpdate& update,
                         cuda::Stream* calls)
    : session_(session),
      buffers_(buffers),
      share_(share),
      context_(context),
      gpus_(gpus),
      update_(update) {
  halves_ = cuda::DeviceBuffer(context.api, cuda::MemoryKind::device, bytes(session, share));
  if (session.sums_on_host()) {
    if (session.exchange.compress) compressed_.emplace(*session.exchange.compress, buffers_);
    const auto pinned = [&](size_t bytes) {
      return cuda::DeviceBuffer(context.api, cuda::MemoryKind::pinned, bytes);
    };
    gradients_ = pinned(update.gradient_bytes());
    terms_ = pinned(std::max(2 * GpuUpdate::losses_of_step(session),
                             static_cast<size_t>(session.topology.replicas())) *
                    sizeof(double));
    made_ = context.api.make_event();
    return;
  }
  all_ = gpus.join_peers(context.api);
  if (calls == nullptr) own_stream_ = context.api.make_urgent_stream();
  stream_ = calls ? calls : own_stream_.get();
  made_ = context.api.make_event();
  summed_ = context.api.make_event();
  buckets_ = gradient_buckets(session, share);
  if (session.topology.devices_per_replica > 1)
    made_after_ops_ = made_after_ops(session, share, buckets_);
  size_t sums = 0;  // of one shard
  for (const auto* programs : {&session.programs, &session.last_programs})
    for (const auto& [rows, program] : *programs) {
      if (session.topology.devices_per_replica == 1)
        made_after_[&program] = made_after(program, buckets_);
      sums = std::max(sums, program.sum_bytes);
    }
  if (session.spec.sync_batch_norm && sums > 0)
    zeros_ = cuda::DeviceBuffer(context.api, cuda::MemoryKind::device, sums);
}

void GpuExchange::begin(const Program& program, bool adds) {
  awaited_ = &made_after_.at(&program);
  adds_ = adds;
  next_ = 0;
}

void GpuExchange::begin_ops() {
  awaited_ = &made_after_ops_;
  adds_ = false;
  next_ = 0;
}

void GpuExchange::after(size_t instruction) {
  size_t end = next_;
  while (end < buckets_.size() && (*awaited_)[end] <= instruction) ++end;
  if (end == next_) return;
  if (adds_) update_.add_gradients(buckets_[next_].begin, buckets_[end - 1].end);
  wait_for_made();
  for (; next_ < end; ++next_) sum(buckets_[next_]);
}

void GpuExchange::sum(const Bucket& bucket) {
  const auto& half = session_.exchange.compress;
  if (!half)
    return sum_in_place(reinterpret_cast<std::byte*>(update_.gradient() + bucket.begin),
                        bucket.count(), DType::f32);
  write_halves(*stream_, bucket);
  sum_in_place(halves(bucket.begin), bucket.count(), *half);
  read_halves(*stream_, own_piece(session_, bucket, gpus_.replica()));
}

// Sums over replicas; with `shard: optimizer` this GPU only receives the sum of its piece.
void GpuExchange::sum_in_place(std::byte* data, size_t count, DType dtype) {
  if (!session_.exchange.shard_states) return all_->all_reduce(*stream_, data, count, dtype);
  all_->reduce_scatter(*stream_, data, count / static_cast<size_t>(session_.topology.replicas()),
                       dtype);
}

void GpuExchange::write_halves(cuda::Stream& stream, const Bucket& e) {
  const auto convert = [&]<class Half>(Half) {
    launch(stream,
           cuda::Convert<float, Half>{update_.gradient() + e.begin,
                                      reinterpret_cast<Half*>(halves(e.begin))},
           static_cast<int64_t>(e.count()));
  };
  *session_.exchange.compress == DType::bf16 ? convert(cuda::Bf16{}) : convert(cuda::F16{});
}

void GpuExchange::read_halves(cuda::Stream& stream, const Bucket& e) {
  const auto convert = [&]<class Half>(Half) {
    launch(stream,
           cuda::Convert<Half, float>{reinterpret_cast<const Half*>(halves(e.begin)),
                                      update_.gradient() + e.begin},
           static_cast<int64_t>(e.count()));
  };
  *session_.exchange.compress == DType::bf16 ? convert(cuda::Bf16{}) : convert(cuda::F16{});
}

void GpuExchange::wait_for_made() {
  context_.stream.record(*made_);
  stream_->wait(*made_);
}

void GpuExchange::sum(void* data, size_t count, DType dtype) {
  wait_for_made();
  all_->all_reduce(*stream_, data, count, dtype);
}

void GpuExchange::wait_for_sums() {
  stream_->record(*summed_);
  context_.stream.wait(*summed_);
}

void GpuExchange::sum_now(std::byte* data, const TensorDesc& desc) {
  if (data == nullptr) {
    data = zeros_.data();
    context_.stream.fill(data, 0, desc.bytes());
  }
  sum(data, desc.bytes() / sizeof(double), DType::f64);
  wait_for_sums();
}

void GpuExchange::pass_now(std::span<const Transfer> all) {
  if (all.empty()) return;
  wait_for_made();
  cuda::CallGroup group(*all_);
  for (const Transfer& t : all)
    t.sends ? all_->send(*stream_, t.value.data, t.value.desc.bytes(), t.other)
            : all_->receive(*stream_, t.value.data, t.value.desc.bytes(), t.other);
  group.end();
  wait_for_sums();
}

// Starts the sum of data [count]. Its second half gets the values of the first rank alone.
void GpuExchange::start_terms(double* data, size_t count) {
  const size_t bytes = count * sizeof(double);
  if (gpus_.replica() == 0)
    context_.stream.copy(data + count, data, bytes);
  else
    context_.stream.fill(data + count, 0, bytes);
  sum(data, 2 * count, DType::f64);
}

void GpuExchange::sum_losses() {
  if (by_nccl()) start_terms(update_.losses(), GpuUpdate::losses_of_step(session_));
}

void GpuExchange::sum_terms(double* data, size_t count, double ShardResult::*field) {
  if (by_nccl()) {
    start_terms(data, count);
    return wait_for_sums();
  }
  cuda::Stream& stream = context_.stream;
  const size_t bytes = count * sizeof(double);
  auto* const terms = reinterpret_cast<double*>(terms_.data());
  stream.copy(terms, data, bytes);
  wait_for_gpu();
  buffers_.result(steps_, gpus_.replica()).*field = std::accumulate(terms, terms + count, 0.0);
  gpus_.peer_barrier();
  std::fill_n(terms, 2 * count, 0.0);
  terms[0] = sum_over_shards(session_.topology.shards,
                             [&](int s) { return buffers_.result(steps_, s).*field; });
  terms[count] = buffers_.result(steps_, 0).*field;
  stream.copy(data, terms, 2 * bytes);
}

void GpuExchange::end(bool losses) {
  if (by_nccl()) {
    after(std::numeric_limits<size_t>::max());
    wait_for_sums();
  } else {
    sum_gradients_on_host();
    if (losses)
      sum_terms(update_.losses(), GpuUpdate::losses_of_step(session_), &ShardResult::loss);
  }
  ++steps_;
}

void GpuExchange::wait_for_gpu() {
  context_.stream.record(*made_);
  gpus_.wait(*made_);
}

// Each worker writes its gradients to shared memory, sums its part of all, and copies what it
// needs.
void GpuExchange::sum_gradients_on_host() {
  const auto replicas = static_cast<size_t>(session_.topology.replicas());
  const auto own = static_cast<size_t>(gpus_.replica());
  const size_t trained = share_.trained();
  bring_gradients();
  gpus_.peer_barrier();
  sum_shards(trained * own / replicas, trained * (own + 1) / replicas);
  gpus_.peer_barrier();
  auto* const pinned = reinterpret_cast<float*>(gradients_.data());
  // Elements that are not copied below must not keep 16-bit numbers of bring_gradients().
  if (compressed_) std::fill_n(pinned, trained, 0.0F);
  for (const Bucket& piece : own_pieces(session_, share_, gpus_.replica())) {
    share_.each(piece.begin, piece.end, [&](size_t from, size_t at, size_t count) {
      std::copy_n(buffers_.gradient(0) + from, count, pinned + at);
    });
    context_.stream.copy(update_.gradient() + piece.begin, pinned + piece.begin,
                         piece.count() * sizeof(float));
  }
  gpus_.peer_barrier();  // no worker may write its next gradients before all have read the sums
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
  for (int s = 0; s < session_.topology.shards; ++s) gradients.push_back(buffers_.gradient(s));
  share_.each(begin, end, [&](size_t from, size_t, size_t count) {
    if (compressed_)
      compressed_->sum({from, from + count}, gradients[0] + from);
    else
      sum_tree(std::span<float* const>(gradients), from, from + count);
  });
}

void GpuExchange::share_norm_partials() {
  if (!session_.exchange.shard_states || !update_.looks()) return;
  const auto gpus = static_cast<size_t>(session_.topology.replicas());
  double* const norm_partials = update_.norm_partials();
  if (by_nccl()) {
    sum(norm_partials, gpus, DType::f64);  // the others' elements are 0
    return wait_for_sums();
  }
  auto* const terms = reinterpret_cast<double*>(terms_.data());
  context_.stream.copy(terms, norm_partials + gpus_.replica(), sizeof(double));
  wait_for_gpu();
  std::ranges::copy(gpus_.all(terms[0]), terms);
  context_.stream.copy(norm_partials, terms, gpus * sizeof(double));
}

void GpuExchange::share_weights() {
  if (!session_.exchange.shard_states) return;
  std::byte* const weights = update_.weights();
  if (by_nccl()) {
    const auto gpus = static_cast<size_t>(session_.topology.replicas());
    wait_for_made();
    cuda::CallGroup group(*all_);
    for (const Bucket& b : buckets_)
      all_->all_gather(*stream_, weights + b.begin * sizeof(float), b.count() / gpus, DType::f32);
    group.end();
    return wait_for_sums();
  }
  auto* const pinned = reinterpret_cast<float*>(gradients_.data());
  for (const Bucket& piece : own_pieces(session_, share_, gpus_.replica())) {
    const size_t at = piece.begin * sizeof(float), n = piece.count() * sizeof(float);
    context_.stream.copy(gradients_.data() + at, weights + at, n);
    wait_for_gpu();
    share_.each(piece.begin, piece.end, [&](size_t from, size_t here, size_t count) {
      std::copy_n(pinned + here, count, buffers_.weights() + from);
    });
  }
  gpus_.peer_barrier();
  share_.each(0, share_.trained(), [&](size_t from, size_t here, size_t count) {
    std::copy_n(buffers_.weights() + from, count, pinned + here);
  });
  gpus_.peer_barrier();  // no worker may write its next weights before all have read these
  context_.stream.copy(weights, gradients_.data(), gradients_.bytes());
}

void GpuExchange::finish() {
  if (!all_) return;
  gpus_.begin_step();
  all_->finish();
  all_.reset();
}

}  // namespace dpt
