// Batch normalisation, y[N, C, ...] = (x - mean[C]) * rstd[C] * w[C] + b[C], in the steps between
// which shards are summed. Sums are in double, so that the variance is E[x^2] - mean^2 without
// loss.
//   channel_sums(x) -> sums[2 C + 1]: of x and of x^2 by channel, and the elements of a channel
//   all_reduce(a) -> a, summed over the shards of the replica (graph/program.h, note [cuts])
//   moments(sums) -> moments[2 C]: mean, and rstd = 1 / sqrt(biased variance + eps)
//   running_moments(mean[C], variance[C]) -> moments[2 C]
//   update_running(sums, mean[C], variance[C], batches[]) -> the three after this batch
//   batch_norm(x, moments, [w], [b]) -> y
//   batch_norm_sums(dy, x, moments) -> sums[2 C + 1]: of dy and of dy * (x - mean) * rstd, elements
//   batch_norm_input_gradient(dy, x, moments, [sums], [w]) -> dx
//   batch_norm_weight_gradient(sums, w) -> dw[C], db[C]
// Ioffe & Szegedy 2015; torch's formulas.
#include <cmath>

#include "graph/operators/image.h"

namespace dpt::operators {
namespace {

TensorDesc f64(Shape s) { return {DType::f64, s}; }

int64_t channels_of(const TensorDesc& x) { return x.shape[1]; }

void need_channels(std::string_view op, const TensorDesc& x) {
  need_real(op, x);
  if (x.shape.rank() < 2 || x.shape.rank() > 4)
    fail(Fault::spec, "{}: takes [N, C], [N, C, W] or [N, C, H, W], not {}", op, x.shape.str());
}

void need_shape(std::string_view op, const TensorDesc& d, const Shape& wanted) {
  if (d.shape != wanted)
    fail(Fault::spec, "{}: {} does not fit the channels, which take {}", op, d.shape.str(),
         wanted.str());
}

// dy, x and the moments.
void need_gradient(std::string_view op, std::span<const TensorDesc> in) {
  need_channels(op, in[1]);
  need_shape(op, in[0], in[1].shape);
  need_shape(op, in[2], {2 * channels_of(in[1])});
}

// Calls f(place in memory, channel) for all elements.
template <class F>
void each_element(const TensorView& x, F f) {
  const Image image(x);
  image.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
    f(image.at(n, c, h, w), static_cast<size_t>(c));
  });
}

double elements_of_channel(const TensorView& x) {
  return static_cast<double>(x.desc.shape.elements()) /
         static_cast<double>(std::max<int64_t>(1, channels_of(x.desc)));
}

std::vector<TensorDesc> infer_sums(std::span<const TensorDesc> in, const std::any&) {
  need_channels("channel_sums", in[0]);
  return {f64({2 * channels_of(in[0]) + 1})};
}

void channel_sums_of(const KernelArgs& args, const std::any&) {
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

std::vector<TensorDesc> infer_same(std::span<const TensorDesc> in, const std::any&) {
  return {in[0]};
}

void copy(const KernelArgs& args, const std::any&) {
  std::ranges::copy(args.in[0].as<const double>(), args.out[0].as<double>().begin());
}

int64_t channels_of_sums(const TensorDesc& sums) { return (sums.shape[0] - 1) / 2; }

std::vector<TensorDesc> infer_moments(std::span<const TensorDesc> in, const std::any&) {
  need_shape("moments", in[0], {2 * channels_of_sums(in[0]) + 1});
  return {f64({2 * channels_of_sums(in[0])})};
}

// Of sums: mean and biased variance of channel c.
struct Moments {
  double mean, variance;
  Moments(std::span<const double> sums, size_t c)
      : mean(sums[c] / sums.back()),
        variance(std::max(0.0, sums[sums.size() / 2 + c] / sums.back() - mean * mean)) {}
};

void moments_of(const KernelArgs& args, const std::any& attrs) {
  const auto sums = args.in[0].as<const double>();
  const auto out = args.out[0].as<double>();
  for (size_t c = 0; c < out.size() / 2; ++c) {
    const Moments m(sums, c);
    out[c] = m.mean;
    out[out.size() / 2 + c] = 1 / std::sqrt(m.variance + settings<BatchNorm>(attrs).eps);
  }
}

std::vector<TensorDesc> infer_running(std::span<const TensorDesc> in, const std::any&) {
  need_shape("running_moments", in[1], in[0].shape);
  return {f64({2 * in[0].shape[0]})};
}

void running_moments_of(const KernelArgs& args, const std::any& attrs) {
  const auto out = args.out[0].as<double>();
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto mean = args.in[0].as<const T>(), variance = args.in[1].as<const T>();
    for (size_t c = 0; c < mean.size(); ++c) {
      out[c] = static_cast<double>(mean[c]);
      out[mean.size() + c] =
          1 / std::sqrt(static_cast<double>(variance[c]) + settings<BatchNorm>(attrs).eps);
    }
  });
}

std::vector<TensorDesc> infer_update(std::span<const TensorDesc> in, const std::any&) {
  const Shape channels{channels_of_sums(in[0])};
  need_shape("update_running", in[0], {2 * channels[0] + 1});
  for (const TensorDesc& d : in.subspan(1, 2)) need_shape("update_running", d, channels);
  need_shape("update_running", in[3], {});
  return {in[1], in[2], in[3]};
}

// The results may be the inputs' memory. The running variance is of the unbiased ones; a single
// element has none.
void update(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<BatchNorm>(attrs);
  const auto sums = args.in[0].as<const double>();
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
      new_variance[c] = static_cast<T>((1 - part) * before + part * unbiased);
    }
  });
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  need_channels("batch_norm", in[0]);
  const int64_t c = channels_of(in[0]);
  need_shape("batch_norm", in[1], {2 * c});
  for (const TensorDesc& p : in.subspan(2)) need_shape("batch_norm", p, {c});
  return {in[0]};
}

// What of the gradient goes through the moments of this batch is part of dx.
std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const bool batch = settings<BatchNorm>(n.attrs).batch, affine = n.in.size() > 2;
  std::vector<ValueId> out(n.in.size(), kNoValue);
  std::vector<ValueId> in = {dy[0], n.in[0], n.in[1]};
  if (batch || affine) {
    const ValueId sums = g.apply("batch_norm_sums", in);
    if (batch) in.push_back(g.apply("all_reduce", {sums}));
    if (affine) {
      in.push_back(n.in[2]);
      out[2] = g.apply("batch_norm_weight_gradient", {sums, n.in[2]});
      if (n.in.size() > 3) out[3] = g.graph().nodes.back().out[1];
    }
  }
  out[0] = g.apply("batch_norm_input_gradient", in, n.attrs);
  return out;
}

template <class T>
std::span<const T> optional_input(const KernelArgs& args, size_t i) {
  return args.in.size() > i ? args.in[i].as<const T>() : std::span<const T>{};
}

void forward(const KernelArgs& args, const std::any&) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>(), w = optional_input<T>(args, 2),
               b = optional_input<T>(args, 3);
    const auto moments = args.in[1].as<const double>();
    const auto y = args.out[0].as<T>();
    each_element(args.in[0], [&](size_t i, size_t c) {
      const double h = (static_cast<double>(x[i]) - moments[c]) * moments[moments.size() / 2 + c];
      y[i] = static_cast<T>(h * (w.empty() ? 1 : static_cast<double>(w[c])) +
                            (b.empty() ? 0 : static_cast<double>(b[c])));
    });
  });
}

std::vector<TensorDesc> infer_gradient_sums(std::span<const TensorDesc> in, const std::any&) {
  need_gradient("batch_norm_sums", in);
  return {f64({in[2].shape[0] + 1})};
}

void gradient_sums(const KernelArgs& args, const std::any&) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const auto moments = args.in[2].as<const double>();
    const auto sums = args.out[0].as<double>();
    const size_t channels = moments.size() / 2;
    std::ranges::fill(sums, 0.0);
    each_element(args.in[0], [&](size_t i, size_t c) {
      const auto d = static_cast<double>(dy[i]);
      sums[c] += d;
      sums[channels + c] += d * (static_cast<double>(x[i]) - moments[c]) * moments[channels + c];
    });
    sums.back() = elements_of_channel(args.in[0]);
  });
}

std::vector<TensorDesc> infer_input_gradient(std::span<const TensorDesc> in,
                                             const std::any& attrs) {
  constexpr std::string_view kOp = "batch_norm_input_gradient";
  need_gradient(kOp, in);
  const bool batch = settings<BatchNorm>(attrs).batch;
  const int64_t c = channels_of(in[1]);
  if (batch) need_shape(kOp, in[3], {2 * c + 1});
  if (in.size() > (batch ? 4 : 3)) need_shape(kOp, in.back(), {c});
  return {in[0]};
}

// dx = rstd * w * (dy - mean of dy - h * mean of dy * h), h the normalised x; the means only where
// the moments are this batch's.
void input_gradient(const KernelArgs& args, const std::any& attrs) {
  const bool batch = settings<BatchNorm>(attrs).batch;
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const auto moments = args.in[2].as<const double>();
    const auto sums = batch ? args.in[3].as<const double>() : std::span<const double>{};
    const auto w = optional_input<T>(args, batch ? 4 : 3);
    const auto dx = args.out[0].as<T>();
    const size_t channels = moments.size() / 2;
    each_element(args.in[0], [&](size_t i, size_t c) {
      const double rstd = moments[channels + c];
      auto g = static_cast<double>(dy[i]);
      if (batch) {
        const double h = (static_cast<double>(x[i]) - moments[c]) * rstd;
        g -= (sums[c] + h * sums[channels + c]) / sums.back();
      }
      dx[i] = static_cast<T>(g * rstd * (w.empty() ? 1 : static_cast<double>(w[c])));
    });
  });
}

std::vector<TensorDesc> infer_weight_gradient(std::span<const TensorDesc> in, const std::any&) {
  need_shape("batch_norm_weight_gradient", in[0], {2 * in[1].shape[0] + 1});
  return {in[1], in[1]};
}

void weight_gradient(const KernelArgs& args, const std::any&) {
  const auto sums = args.in[0].as<const double>();
  with_type_of(args.out[0], [&]<class T>(T) {
    const auto dw = args.out[0].as<T>(), db = args.out[1].as<T>();
    for (size_t c = 0; c < dw.size(); ++c) {
      db[c] = static_cast<T>(sums[c]);
      dw[c] = static_cast<T>(sums[dw.size() + c]);
    }
  });
}

// Moments and sums as they may be: rstd and counts are above 0.
Sample::Range kPositive{0.5, 2};

std::vector<Sample> sums_samples() {
  return {{{"channel_sums", {f32({3, 2})}, {f64({5})}, {}}},
          {{"channel_sums", {f32({2, 17, 5})}, {f64({35})}, {}}},
          {{"channel_sums", {f32({3, 16, 2, 3})}, {f64({33})}, {}}}};
}

std::vector<Sample> all_reduce_samples() { return {{{"all_reduce", {f64({5})}, {f64({5})}, {}}}}; }

std::vector<Sample> moments_samples() {
  return {{{"moments", {f64({7})}, {f64({6})}, {}}, {kPositive}},
          {{"moments", {f64({7})}, {f64({6})}, BatchNorm{.eps = 0.1}}, {kPositive}}};
}

std::vector<Sample> running_samples() {
  return {{{"running_moments", {f32({3}), f32({3})}, {f64({6})}, BatchNorm{.eps = 0.1}},
           {{}, kPositive}}};
}

std::vector<Sample> update_samples() {
  const TensorDesc mean = f32({3}), seen{DType::i64, {}};
  const std::vector<Sample::Range> ranges = {{2, 4}, {}, kPositive, {0, 9}};
  return {{{"update_running", {f64({7}), mean, mean, seen}, {mean, mean, seen}, {}}, ranges},
          {{"update_running",
            {f64({7}), mean, mean, seen},
            {mean, mean, seen},
            BatchNorm{.momentum = -1}},
           ranges}};
}

// Of constant moments: those of the batch change with x, which is for the layer's tests.
std::vector<Sample> samples() {
  const BatchNorm constant{.batch = false};
  const std::vector<Sample::Range> ranges = {{}, kPositive};
  return {{{"batch_norm", {f32({3, 2}), f64({4})}, {f32({3, 2})}, constant}, ranges},
          {{"batch_norm", {f32({2, 17, 5}), f64({34}), f32({17})}, {f32({2, 17, 5})}, constant},
           ranges},
          {{"batch_norm",
            {f32({3, 16, 2, 3}), f64({32}), f32({16}), f32({16})},
            {f32({3, 16, 2, 3})},
            constant},
           ranges}};
}

std::vector<Sample> gradient_sums_samples() {
  const auto of = [](Shape s) {
    return Sample{{"batch_norm_sums", {f32(s), f32(s), f64({2 * s[1]})}, {f64({2 * s[1] + 1})}, {}},
                  {{}, {}, kPositive}};
  };
  return {of({3, 2}), of({2, 17, 5}), of({3, 16, 2, 3})};
}

std::vector<Sample> input_gradient_samples() {
  std::vector<Sample> out;
  for (const Shape& s : {Shape{3, 2}, Shape{2, 17, 5}, Shape{3, 16, 2, 3}})
    for (const bool batch : {false, true})
      for (const bool weight : {false, true}) {
        std::vector<TensorDesc> in = {f32(s), f32(s), f64({2 * s[1]})};
        std::vector<Sample::Range> ranges = {{}, {}, kPositive};
        if (batch) {
          in.push_back(f64({2 * s[1] + 1}));
          ranges.push_back(kPositive);
        }
        if (weight) in.push_back(f32({s[1]}));
        out.push_back(
            {{"batch_norm_input_gradient", in, {f32(s)}, BatchNorm{.batch = batch}}, ranges});
      }
  return out;
}

std::vector<Sample> weight_gradient_samples() {
  return {{{"batch_norm_weight_gradient", {f64({7}), f32({3})}, {f32({3}), f32({3})}, {}}}};
}

}  // namespace

OperatorType channel_sums() {
  return on_images({"channel_sums", Precision::follow, infer_sums, nullptr, channel_sums_of,
                    sums_samples, elements_of_first_input});
}

OperatorType all_reduce() {
  OperatorType out = {"all_reduce", Precision::full, infer_same, nullptr, copy, all_reduce_samples};
  out.over_shards = true;
  return out;
}

OperatorType moments() {
  return {"moments", Precision::full, infer_moments, nullptr, moments_of, moments_samples};
}

OperatorType running_moments() {
  return {"running_moments", Precision::full,    infer_running,
          nullptr,           running_moments_of, running_samples};
}

OperatorType update_running() {
  return {"update_running", Precision::full, infer_update, nullptr, update, update_samples};
}

OperatorType batch_norm() {
  return on_images({"batch_norm", Precision::follow, infer, gradient, forward, samples});
}

OperatorType batch_norm_sums() {
  return on_images({"batch_norm_sums", Precision::full, infer_gradient_sums, nullptr, gradient_sums,
                    gradient_sums_samples, elements_of_first_input});
}

OperatorType batch_norm_input_gradient() {
  return on_images({"batch_norm_input_gradient", Precision::full, infer_input_gradient, nullptr,
                    input_gradient, input_gradient_samples});
}

OperatorType batch_norm_weight_gradient() {
  return {"batch_norm_weight_gradient",
          Precision::full,
          infer_weight_gradient,
          nullptr,
          weight_gradient,
          weight_gradient_samples};
}

}  // namespace dpt::operators
