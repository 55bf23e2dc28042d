// layer_norm (Ba et al., 2016): y = (x - mean) * rstd * w + b, with moments over the last `dims`
// dimensions of x[M..., K...]; rstd = 1 / sqrt(biased variance + eps). w and b are [K...]; b, or
// both, may be missing. Further results for the gradient: mean[M...] and rstd[M...].
//   layer_norm_input_gradient(dy, x, mean, rstd, [w]) -> dx
//   layer_norm_weight_gradient(dy, x, mean, rstd) -> dw[K...], db[K...]
//   layer_norm_backward(dy, x, mean, rstd, w) -> dx, dw, db: both in one pass, for GPUs; made by
//     graph/passes/fuse.cpp
#include <algorithm>
#include <cmath>

#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

Shape leading(const Shape& x, int dims) {
  return Shape(x.extents().first(static_cast<size_t>(x.rank() - dims)));
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  need_real("layer_norm", in[0]);
  const int dims = settings<LayerNorm>(attrs).dims;
  const Shape& x = in[0].shape;
  if (dims < 1 || dims >= x.rank())
    fail(Fault::spec, "layer_norm: cannot normalize over the last {} dimensions of {}", dims,
         x.str());
  const Shape normalised = x.tail(x.rank() - dims);
  for (const TensorDesc& p : in.subspan(1))
    if (p.shape != normalised)
      fail(Fault::spec, "layer_norm: parameter {} does not fit the last {} dimensions of {}",
           p.shape.str(), dims, x.str());
  const TensorDesc per_row{full(in[0].dtype), leading(x, dims)};
  return {in[0], per_row, per_row};
}

std::vector<TensorDesc> infer_input(std::span<const TensorDesc> in, const std::any&) {
  require(in[0] == in[1] && in[2] == in[3], "layer_norm_input_gradient: dy is like x");
  return {in[0]};
}

std::vector<TensorDesc> infer_weight(std::span<const TensorDesc> in, const std::any& attrs) {
  require(in[0] == in[1] && in[2] == in[3], "layer_norm_weight_gradient: dy is like x");
  const Shape& x = in[0].shape;
  const TensorDesc d{full(in[0].dtype), x.tail(x.rank() - settings<LayerNorm>(attrs).dims)};
  return {d, d};
}

std::vector<TensorDesc> infer_backward(std::span<const TensorDesc> in, const std::any& attrs) {
  std::vector<TensorDesc> out = infer_input(in, attrs);
  for (const TensorDesc& d : infer_weight(in.first(4), attrs)) out.push_back(d);
  require(in[4] == out[1], "layer_norm_backward: w is like its gradient");
  return out;
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  std::vector<ValueId> in = {dy[0], n.in[0], n.out[1], n.out[2]};
  std::vector<ValueId> out(n.in.size(), kNoValue);
  if (n.in.size() > 1) {
    out[1] = g.apply("layer_norm_weight_gradient", in, n.attrs);
    if (n.in.size() > 2) out[2] = g.graph().nodes.back().out[1];
    in.push_back(n.in[1]);
  }
  out[0] = g.apply("layer_norm_input_gradient", in, n.attrs);
  return out;
}

void forward(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto w = args.in.size() > 1 ? args.in[1].as<const T>() : std::span<const T>{};
    const auto b = args.in.size() > 2 ? args.in[2].as<const T>() : std::span<const T>{};
    const auto y = args.out[0].as<T>(), mean = args.out[1].as<T>(), rstd = args.out[2].as<T>();
    const size_t rows = mean.size(), k = x.size() / std::max<size_t>(1, rows);
    for (size_t r = 0; r < rows; ++r) {
      double sum = 0, squares = 0;
      for (size_t i = 0; i < k; ++i) sum += static_cast<double>(x[r * k + i]);
      const double m = sum / static_cast<double>(k);
      for (size_t i = 0; i < k; ++i) {
        const double d = static_cast<double>(x[r * k + i]) - m;
        squares += d * d;
      }
      const double s =
          1 / std::sqrt(squares / static_cast<double>(k) + settings<LayerNorm>(attrs).eps);
      for (size_t i = 0; i < k; ++i)
        y[r * k + i] = static_cast<T>((static_cast<double>(x[r * k + i]) - m) * s *
                                          (w.empty() ? 1 : static_cast<double>(w[i])) +
                                      (b.empty() ? 0 : static_cast<double>(b[i])));
      mean[r] = static_cast<T>(m);
      rstd[r] = static_cast<T>(s);
    }
  });
}

// With g = dy * w and h the normalized x: dx = rstd * (g - mean(g) - h * mean(g * h)).
void input_gradient(const KernelArgs& args, const std::any&) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const auto mean = args.in[2].as<const T>(), rstd = args.in[3].as<const T>();
    const auto w = args.in.size() > 4 ? args.in[4].as<const T>() : std::span<const T>{};
    const auto dx = args.out[0].as<T>();
    const size_t rows = mean.size(), k = x.size() / std::max<size_t>(1, rows);
    for (size_t r = 0; r < rows; ++r) {
      const double m = static_cast<double>(mean[r]), s = static_cast<double>(rstd[r]);
      const auto g = [&](size_t i) {
        return static_cast<double>(dy[r * k + i]) * (w.empty() ? 1 : static_cast<double>(w[i]));
      };
      const auto h = [&](size_t i) { return (static_cast<double>(x[r * k + i]) - m) * s; };
      double sum = 0, along_h = 0;
      for (size_t i = 0; i < k; ++i) {
        sum += g(i);
        along_h += g(i) * h(i);
      }
      const double n = static_cast<double>(k);
      for (size_t i = 0; i < k; ++i)
        dx[r * k + i] = static_cast<T>(s * (g(i) - sum / n - h(i) * along_h / n));
    }
  });
}

void weight_gradient(const KernelArgs& args, const std::any&) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const auto mean = args.in[2].as<const T>(), rstd = args.in[3].as<const T>();
    const auto dw = args.out[0].as<T>(), db = args.out[1].as<T>();
    const size_t rows = mean.size(), k = dw.size();
    for (size_t i = 0; i < k; ++i) {
      double sum = 0, along_h = 0;
      for (size_t r = 0; r < rows; ++r) {
        const double d = static_cast<double>(dy[r * k + i]);
        sum += d;
        along_h += d * (static_cast<double>(x[r * k + i]) - static_cast<double>(mean[r])) *
                   static_cast<double>(rstd[r]);
      }
      dw[i] = static_cast<T>(along_h);
      db[i] = static_cast<T>(sum);
    }
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  weight_gradient({.in = args.in.first(4), .out = args.out.subspan(1), .context = args.context},
                  attrs);
  input_gradient({.in = args.in, .out = args.out.first(1), .context = args.context}, attrs);
}

// The shapes of x, of the mean and of the parameters.
struct Case {
  Shape x, row, w;
  int dims;
};
const Case kCases[] = {
    {{3, 5}, {3}, {5}, 1}, {{2, 4, 33}, {2, 4}, {33}, 1}, {{2, 3, 4}, {2}, {3, 4}, 2}};

std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const Case& c : kCases) {
    const std::vector<TensorDesc> results = {f32(c.x), f32(c.row), f32(c.row)};
    const LayerNorm attrs{.dims = c.dims, .eps = 1e-3};
    out.push_back({{"layer_norm", {f32(c.x)}, results, attrs}});
    out.push_back({{"layer_norm", {f32(c.x), f32(c.w)}, results, attrs}});
    out.push_back({{"layer_norm", {f32(c.x), f32(c.w), f32(c.w)}, results, attrs}});
  }
  return out;
}

std::vector<Sample> input_samples() {
  std::vector<Sample> out;
  for (const Case& c : kCases) {
    std::vector<TensorDesc> in = {f32(c.x), f32(c.x), f32(c.row), f32(c.row)};
    const std::vector<Sample::Range> ranges = {{}, {}, {-1, 1}, {0.5, 2}};
    out.push_back({{"layer_norm_input_gradient", in, {f32(c.x)}, LayerNorm{c.dims}}, ranges});
    in.push_back(f32(c.w));
    out.push_back({{"layer_norm_input_gradient", in, {f32(c.x)}, LayerNorm{c.dims}}, ranges});
  }
  return out;
}

std::vector<Sample> weight_samples() {
  std::vector<Sample> out;
  for (const Case& c : kCases)
    out.push_back({{"layer_norm_weight_gradient",
                    {f32(c.x), f32(c.x), f32(c.row), f32(c.row)},
                    {f32(c.w), f32(c.w)},
                    LayerNorm{c.dims}},
                   {{}, {}, {-1, 1}, {0.5, 2}}});
  return out;
}

std::vector<Sample> backward_samples() {
  std::vector<Sample> out;
  for (const Case& c : kCases)
    out.push_back({{"layer_norm_backward",
                    {f32(c.x), f32(c.x), f32(c.row), f32(c.row), f32(c.w)},
                    {f32(c.x), f32(c.w), f32(c.w)},
                    LayerNorm{c.dims}},
                   {{}, {}, {-1, 1}, {0.5, 2}}});
  return out;
}

}  // namespace

OperatorType layer_norm() {
  return {.name = "layer_norm",
          .precision = Precision::full_on_cuda,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = samples};
}

OperatorType layer_norm_input_gradient() {
  return {.name = "layer_norm_input_gradient",
          .precision = Precision::full,
          .infer = infer_input,
          .reference = input_gradient,
          .samples = input_samples,
          .backward = true};
}

OperatorType layer_norm_weight_gradient() {
  return {.name = "layer_norm_weight_gradient",
          .precision = Precision::full,
          .infer = infer_weight,
          .reference = weight_gradient,
          .samples = weight_samples,
          .flops = elements_of_first_input,
          .backward = true};
}

OperatorType layer_norm_backward() {
  return {.name = "layer_norm_backward",
          .precision = Precision::full,
          .infer = infer_backward,
          .reference = backward,
          .samples = backward_samples,
          .flops = elements_of_first_input,
          .backward = true};
}

}  // namespace dpt::operators
