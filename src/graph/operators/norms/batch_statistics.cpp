// The statistics of batch normalization, as a sequence of operators between which shards are
// summed. Sums are in double, so that the variance E[x^2] - mean^2 does not lose precision.
//   channel_sums(x) -> sums[2 C + 1]: of x and of x^2 for each channel, and elements per channel
//   all_reduce(a) -> a summed over the shards of the replica (program.h, Note [sync points])
//   moments(sums) -> moments[2 C]: mean, and rstd = 1 / sqrt(biased variance + eps)
//   running_moments(mean[C], variance[C]) -> moments[2 C]
//   update_running(sums, mean[C], variance[C], batches[]) -> the last three after this batch
//   update_running(sums, mean, variance, batches, pending[2 C + 1]) -> the last four after this
//     chunk: pending adds up the sums of chunks, and the last chunk updates the others from it
//     (DeferredBatchNorm of PyTorch's pipelines)
#include <cmath>
#include <cstring>

#include "graph/operators/norms/batch_norm.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer_sums(std::span<const TensorDesc> in) {
  need_channels("channel_sums", in[0]);
  return {f64({2 * channels_of(in[0]) + 1})};
}

void channel_sums_of(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto sums = args.out[0].as<double>();
    const auto c = static_cast<size_t>(channels_of(args.in[0].desc));
    std::ranges::fill(sums, 0.0);
    each_element(args.in[0], [&](size_t i, size_t channel) {
      const auto v = static_cast<double>(x[i]);
      sums[channel] += v;
      sums[c + channel] += v * v;
    });
    sums.back() = elements_of_channel(args.in[0]);
  });
}

std::vector<TensorDesc> infer_same(std::span<const TensorDesc> in) { return {in[0]}; }

void copy(const KernelArgs& args) {
  std::ranges::copy(args.in[0].as<const double>(), args.out[0].as<double>().begin());
}

int64_t channels_of_sums(const TensorDesc& sums) { return (sums.shape[0] - 1) / 2; }

std::vector<TensorDesc> infer_moments(std::span<const TensorDesc> in) {
  need_shape("moments", in[0], {2 * channels_of_sums(in[0]) + 1});
  return {f64({2 * channels_of_sums(in[0])})};
}

// Mean and biased variance of channel c.
struct Moments {
  double mean, variance;
  Moments(std::span<const double> sums, size_t c)
      : mean(sums[c] / sums.back()),
        variance(std::max(0.0, sums[sums.size() / 2 + c] / sums.back() - mean * mean)) {}
};

void moments_of(const KernelArgs& args, const BatchNorm& attrs) {
  const auto sums = args.in[0].as<const double>();
  const auto out = args.out[0].as<double>();
  for (size_t c = 0; c < out.size() / 2; ++c) {
    const Moments m(sums, c);
    out[c] = m.mean;
    out[out.size() / 2 + c] = 1 / std::sqrt(m.variance + attrs.eps);
  }
}

std::vector<TensorDesc> infer_running(std::span<const TensorDesc> in) {
  need_shape("running_moments", in[1], in[0].shape);
  return {f64({2 * in[0].shape[0]})};
}

void running_moments_of(const KernelArgs& args, const BatchNorm& attrs) {
  const auto out = args.out[0].as<double>();
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto mean = args.in[0].as<const T>(), variance = args.in[1].as<const T>();
    for (size_t c = 0; c < mean.size(); ++c) {
      out[c] = static_cast<double>(mean[c]);
      out[mean.size() + c] = 1 / std::sqrt(static_cast<double>(variance[c]) + attrs.eps);
    }
  });
}

std::vector<TensorDesc> infer_update(std::span<const TensorDesc> in) {
  const Shape channels{channels_of_sums(in[0])};
  need_shape("update_running", in[0], {2 * channels[0] + 1});
  for (const TensorDesc& d : in.subspan(1, 2)) need_shape("update_running", d, channels);
  need_shape("update_running", in[3], {});
  if (in.size() > 4) need_shape("update_running", in[4], in[0].shape);
  return {in.begin() + 1, in.end()};
}

// Results may share memory with the inputs. The running variance averages unbiased variances; a
// channel with a single element has none and leaves it unchanged. DeferredBatchNorm averages biased
// variances.
void move_running(const KernelArgs& args, const BatchNorm& s, std::span<const double> sums,
                  bool biased) {
  const auto seen = args.in[3].as<const int64_t>()[0] + 1;
  args.out[2].as<int64_t>()[0] = seen;
  const double part = s.momentum < 0 ? 1 / static_cast<double>(seen) : s.momentum;
  with_type_of(args.in[1], [&]<class T>(T) {
    const auto mean = args.in[1].as<const T>(), variance = args.in[2].as<const T>();
    const auto new_mean = args.out[0].as<T>(), new_variance = args.out[1].as<T>();
    for (size_t c = 0; c < mean.size(); ++c) {
      const Moments m(sums, c);
      const auto before = static_cast<double>(variance[c]);
      const double unbiased =
          sums.back() > 1 ? m.variance * sums.back() / (sums.back() - 1) : before;
      new_mean[c] = static_cast<T>((1 - part) * static_cast<double>(mean[c]) + part * m.mean);
      new_variance[c] =
          static_cast<T>((1 - part) * before + part * (biased ? m.variance : unbiased));
    }
  });
}

void update(const KernelArgs& args, const BatchNorm& s) {
  const auto sums = args.in[0].as<const double>();
  if (args.in.size() == 4) return move_running(args, s, sums, false);
  require(args.context != nullptr, "deferred statistics need the step's context");
  const auto before = args.in[4].as<const double>();
  const auto pending = args.out[3].as<double>();
  for (size_t i = 0; i < sums.size(); ++i) pending[i] = before[i] + sums[i];
  if (args.context->last_chunk) {
    move_running(args, s, pending, true);
    std::ranges::fill(pending, 0.0);
    return;
  }
  for (size_t i = 0; i < 3; ++i)
    if (args.out[i].data != args.in[i + 1].data)
      std::memcpy(args.out[i].data, args.in[i + 1].data, args.in[i + 1].desc.bytes());
}

}  // namespace

Operators batch_statistics() {
  return {{.name = "channel_sums",
           .precision = Precision::statistics,
           .infer = typed<infer_sums>,
           .reference = typed<channel_sums_of>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .takes_batch_moments = [](const std::any&) { return true; }},
          {.name = "all_reduce",
           .precision = Precision::statistics,
           .infer = typed<infer_same>,
           .reference = typed<copy>,
           .traits = Trait::over_shards},
          {.name = "moments",
           .precision = Precision::statistics,
           .infer = typed<infer_moments>,
           .reference = typed<moments_of>},
          {.name = "running_moments",
           .precision = Precision::statistics,
           .infer = typed<infer_running>,
           .reference = typed<running_moments_of>},
          {.name = "update_running",
           .precision = Precision::statistics,
           .infer = typed<infer_update>,
           .reference = typed<update>}};
}

}  // namespace dpt::operators
