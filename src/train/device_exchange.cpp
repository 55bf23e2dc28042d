#include "train/device_exchange.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/fail.h"
#include "graph/operator.h"

namespace dpt {

std::vector<Bucket> gradient_buckets(const Session& s, double mib) {
  constexpr double kMiB = 1048576, kFirst = 1;
  std::vector<size_t> begins;  // of stored gradients
  for (size_t p = 0; p < s.graph.parameters.size(); ++p)
    if (s.graph.gradients[p] != kNoValue && s.layout.offset[p] < s.layout.stored)
      begins.push_back(s.layout.offset[p]);
  std::ranges::sort(begins);
  begins.push_back(s.layout.stored);
  std::vector<Bucket> out;
  Bucket now;
  for (size_t p = 1; p < begins.size(); ++p) {
    now.end = begins[p];
    const double most = out.empty() ? std::min(kFirst, mib) : mib;
    const bool full = static_cast<double>((now.end - now.begin) * sizeof(float)) >= most * kMiB;
    if (!full && p + 1 < begins.size()) continue;
    out.push_back(now);
    now.begin = now.end;
  }
  return out;
}

double bucket_mib(const Session& s) { return s.exchange.bucket_mib.value_or(25); }

std::vector<size_t> made_after(const Program& program, const std::vector<Bucket>& buckets) {
  std::vector<size_t> out(buckets.size());
  for (size_t i = 0; i < program.backward.size(); ++i)
    for (const ValueId v : program.graph.nodes[program.backward[i].node].out) {
      const Slice& place = program.place[static_cast<size_t>(v)];
      if (place.arena != Arena::gradients) continue;
      const size_t at = place.offset / sizeof(float);
      const auto b = std::ranges::find_if(
          buckets, [&](const Bucket& bucket) { return bucket.begin <= at && at < bucket.end; });
      require(b != buckets.end(), "every stored gradient lies in a bucket");
      out[static_cast<size_t>(b - buckets.begin())] = i;
    }
  for (size_t b = 1; b < out.size(); ++b) out[b] = std::max(out[b], out[b - 1]);
  return out;
}

DeviceExchange::DeviceExchange(const Session& session, const Buffers& buffers,
                               cuda::DeviceContext& context, DeviceTeam& gpus, DeviceUpdate& update)
    : session_(session), buffers_(buffers), context_(context), gpus_(gpus), update_(update) {
  if (session.sums_on_host()) {
    const auto pinned = [&](size_t bytes) {
      return cuda::Memory(context.api, cuda::MemoryKind::pinned, bytes);
    };
    gradients_ = pinned(update.gradient_bytes());
    terms_ = pinned(2 * DeviceUpdate::losses_of_step(session) * sizeof(double));
    made_ = context.api.make_event();
    return;
  }
  all_ = gpus.join(context.api);
  stream_ = context.api.make_stream();
  made_ = context.api.make_event();
  summed_ = context.api.make_event();
  buckets_ = gradient_buckets(session, bucket_mib(session));
  size_t sums = 0;  // of one shard
  for (const auto& [rows, program] : session.programs) {
    made_after_[&program] = made_after(program, buckets_);
    sums = std::max(sums, program.sum_bytes);
  }
  if (session.spec.sync_batch_norm && sums > 0)
    zeros_ = cuda::Memory(context.api, cuda::MemoryKind::device, sums);
}

void DeviceExchange::begin(const Program& program, bool adds) {
  awaited_ = &made_after_.at(&program);
  adds_ = adds;
  next_ = 0;
}

void DeviceExchange::after(size_t instruction) {
  for (; next_ < buckets_.size() && (*awaited_)[next_] <= instruction; ++next_)
    sum(buckets_[next_]);
}

void DeviceExchange::sum(const Bucket& bucket) {
  if (adds_) update_.add_gradients(bucket.begin, bucket.end);
  sum(update_.gradient() + bucket.begin, bucket.end - bucket.begin, DType::f32);
}

void DeviceExchange::sum(void* data, size_t count, DType dtype) {
  context_.stream.record(*made_);
  stream_->wait(*made_);
  all_->all_reduce(*stream_, data, count, dtype);
}

void DeviceExchange::wait_for_sums() {
  stream_->record(*summed_);
  context_.stream.wait(*summed_);
}

void DeviceExchange::sum_now(std::byte* data, const TensorDesc& desc) {
  if (data == nullptr) {
    data = zeros_.data();
    context_.stream.fill(data, 0, desc.bytes());
  }
  sum(data, desc.bytes() / sizeof(double), DType::f64);
  wait_for_sums();
}

void DeviceExchange::sum_terms(double* data, size_t count, double ShardResult::*what) {
  cuda::Stream& stream = context_.stream;
  const size_t bytes = count * sizeof(double);
  if (by_nccl()) {
    if (gpus_.worker() == 0)
      stream.copy(data + count, data, bytes);
    else
      stream.fill(data + count, 0, bytes);
    sum(data, 2 * count, DType::f64);
    return wait_for_sums();
  }
  auto* const terms = reinterpret_cast<double*>(terms_.data());
  stream.copy(terms, data, bytes);
  wait_for_gpu();
  buffers_.result(steps_, gpus_.worker()).*what = std::accumulate(terms, terms + count, 0.0);
  gpus_.meet();
  std::fill_n(terms, 2 * count, 0.0);
  terms[0] =
      sum_over_shards(session_.who.shards, [&](int s) { return buffers_.result(steps_, s).*what; });
  terms[count] = buffers_.result(steps_, 0).*what;
  stream.copy(data, terms, 2 * bytes);
}

void DeviceExchange::end() {
  if (by_nccl())
    for (; next_ < buckets_.size(); ++next_) sum(buckets_[next_]);
  else
    sum_gradients_on_host();
  sum_terms(update_.losses(), DeviceUpdate::losses_of_step(session_), &ShardResult::loss);
  ++steps_;
}

void DeviceExchange::wait_for_gpu() {
  context_.stream.record(*made_);
  gpus_.wait(*made_);
}

void DeviceExchange::sum_gradients_on_host() {
  const auto shards = static_cast<size_t>(session_.who.shards);
  const auto own = static_cast<size_t>(gpus_.worker());
  const size_t stored = session_.layout.stored;
  context_.stream.copy(gradients_.data(), update_.gradient(), gradients_.bytes());
  wait_for_gpu();
  std::memcpy(buffers_.gradient(gpus_.worker()), gradients_.data(), gradients_.bytes());
  gpus_.meet();
  std::vector<float*> gradients;
  for (size_t s = 0; s < shards; ++s) gradients.push_back(buffers_.gradient(static_cast<int>(s)));
  sum_tree(std::span<float* const>(gradients), stored * own / shards, stored * (own + 1) / shards);
  gpus_.meet();
  std::memcpy(gradients_.data(), gradients[0], gradients_.bytes());
  gpus_.meet();  // before anybody brings the next ones
  context_.stream.copy(update_.gradient(), gradients_.data(), gradients_.bytes());
}

void DeviceExchange::finish() {
  if (!all_) return;
  gpus_.begin_step();
  all_->finish();
  all_.reset();
}

}  // namespace dpt
