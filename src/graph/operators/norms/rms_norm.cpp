// rms_norm (Zhang and Sennrich, 2019): y = x * rstd * w with rstd = 1 / sqrt(mean(x^2) + eps) over
// the last `dims` dimensions of x[M..., K...]. w is [K...] and may be missing. The second result is
// rstd[M...], for the gradient.
//   rms_norm_input_gradient(dy, x, rstd, [w]) -> dx
//   rms_norm_weight_gradient(dy, x, rstd) -> dw[K...]
#include <algorithm>
#include <cmath>

#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  need_real("rms_norm", in[0]);
  const int dims = settings<RmsNorm>(attrs).dims;
  const Shape& x = in[0].shape;
  if (dims < 1 || dims >= x.rank())
    fail(Fault::spec, "rms_norm: cannot normalize over the last {} dimensions of {}", dims,
         x.str());
  if (in.size() > 1 && in[1].shape != x.tail(x.rank() - dims))
    fail(Fault::spec, "rms_norm: parameter {} does not fit the last {} dimensions of {}",
         in[1].shape.str(), dims, x.str());
  return {in[0],
          {full(in[0].dtype), Shape(x.extents().first(static_cast<size_t>(x.rank() - dims)))}};
}

std::vector<TensorDesc> infer_input(std::span<const TensorDesc> in, const std::any&) {
  require(in[0] == in[1], "rms_norm_input_gradient: dy is like x");
  return {in[0]};
}

std::vector<TensorDesc> infer_weight(std::span<const TensorDesc> in, const std::any& attrs) {
  require(in[0] == in[1], "rms_norm_weight_gradient: dy is like x");
  const Shape& x = in[0].shape;
  return {{full(in[0].dtype), x.tail(x.rank() - settings<RmsNorm>(attrs).dims)}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  std::vector<ValueId> in = {dy[0], n.in[0], n.out[1]};
  std::vector<ValueId> out(n.in.size(), kNoValue);
  if (n.in.size() > 1) {
    out[1] = g.apply("rms_norm_weight_gradient", in, n.attrs);
    in.push_back(n.in[1]);
  }
  out[0] = g.apply("rms_norm_input_gradient", in, n.attrs);
  return out;
}

void forward(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto w = args.in.size() > 1 ? args.in[1].as<const T>() : std::span<const T>{};
    const auto y = args.out[0].as<T>(), rstd = args.out[1].as<T>();
    const size_t rows = rstd.size(), k = x.size() / std::max<size_t>(1, rows);
    for (size_t r = 0; r < rows; ++r) {
      const auto at = [&](size_t i) { return static_cast<double>(x[r * k + i]); };
      double squares = 0;
      for (size_t i = 0; i < k; ++i) squares += at(i) * at(i);
      const double s =
          1 / std::sqrt(squares / static_cast<double>(k) + settings<RmsNorm>(attrs).eps);
      for (size_t i = 0; i < k; ++i)
        y[r * k + i] = static_cast<T>(at(i) * s * (w.empty() ? 1 : static_cast<double>(w[i])));
      rstd[r] = static_cast<T>(s);
    }
  });
}

// With g = dy * w and h = x * rstd: dx = rstd * (g - h * mean(g * h)).
void input_gradient(const KernelArgs& args, const std::any&) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const auto rstd = args.in[2].as<const T>();
    const auto w = args.in.size() > 3 ? args.in[3].as<const T>() : std::span<const T>{};
    const auto dx = args.out[0].as<T>();
    const size_t rows = rstd.size(), k = x.size() / std::max<size_t>(1, rows);
    for (size_t r = 0; r < rows; ++r) {
      const double s = static_cast<double>(rstd[r]);
      const auto g = [&](size_t i) {
        return static_cast<double>(dy[r * k + i]) * (w.empty() ? 1 : static_cast<double>(w[i]));
      };
      const auto h = [&](size_t i) { return static_cast<double>(x[r * k + i]) * s; };
      double along_h = 0;
      for (size_t i = 0; i < k; ++i) along_h += g(i) * h(i);
      for (size_t i = 0; i < k; ++i)
        dx[r * k + i] = static_cast<T>(s * (g(i) - h(i) * along_h / static_cast<double>(k)));
    }
  });
}

void weight_gradient(const KernelArgs& args, const std::any&) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const auto rstd = args.in[2].as<const T>();
    const auto dw = args.out[0].as<T>();
    const size_t rows = rstd.size(), k = dw.size();
    for (size_t i = 0; i < k; ++i) {
      double sum = 0;
      for (size_t r = 0; r < rows; ++r)
        sum += static_cast<double>(dy[r * k + i]) * static_cast<double>(x[r * k + i]) *
               static_cast<double>(rstd[r]);
      dw[i] = static_cast<T>(sum);
    }
  });
}

// The shapes of x, of rstd and of the weight.
struct Case {
  Shape x, row, w;
  int dims;
};
std::vector<Case> cases() {
  return {{{3, 5}, {3}, {5}, 1}, {{2, 4, 33}, {2, 4}, {33}, 1}, {{2, 3, 4}, {2}, {3, 4}, 2}};
}

std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const Case& c : cases()) {
    const std::vector<TensorDesc> results = {f32(c.x), f32(c.row)};
    const RmsNorm attrs{.dims = c.dims, .eps = 1e-3};
    out.push_back({{"rms_norm", {f32(c.x)}, results, attrs}});
    out.push_back({{"rms_norm", {f32(c.x), f32(c.w)}, results, attrs}});
  }
  return out;
}

std::vector<Sample> input_samples() {
  std::vector<Sample> out;
  for (const Case& c : cases()) {
    std::vector<TensorDesc> in = {f32(c.x), f32(c.x), f32(c.row)};
    const std::vector<Sample::Range> ranges = {{}, {}, {0.5, 2}};
    out.push_back({{"rms_norm_input_gradient", in, {f32(c.x)}, RmsNorm{c.dims}}, ranges});
    in.push_back(f32(c.w));
    out.push_back({{"rms_norm_input_gradient", in, {f32(c.x)}, RmsNorm{c.dims}}, ranges});
  }
  return out;
}

std::vector<Sample> weight_samples() {
  std::vector<Sample> out;
  for (const Case& c : cases())
    out.push_back({{"rms_norm_weight_gradient",
                    {f32(c.x), f32(c.x), f32(c.row)},
                    {f32(c.w)},
                    RmsNorm{c.dims}},
                   {{}, {}, {0.5, 2}}});
  return out;
}

}  // namespace

OperatorType rms_norm() {
  return {.name = "rms_norm",
          .precision = Precision::full_on_cuda,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = samples};
}

OperatorType rms_norm_input_gradient() {
  return {.name = "rms_norm_input_gradient",
          .precision = Precision::full,
          .infer = infer_input,
          .reference = input_gradient,
          .samples = input_samples,
          .backward = true};
}

OperatorType rms_norm_weight_gradient() {
  return {.name = "rms_norm_weight_gradient",
          .precision = Precision::full,
          .infer = infer_weight,
          .reference = weight_gradient,
          .samples = weight_samples,
          .flops = elements_of_first_input,
          .backward = true};
}

}  // namespace dpt::operators
