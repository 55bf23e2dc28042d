// group_norm (Wu and He, 2018): y = (x - mean) * rstd * w[c] + b[c] for x[N, C, ...], with moments
// over the C / groups channels of each group of a sample; rstd = 1 / sqrt(biased variance + eps). w
// and b are [C]; b, or both, may be missing. Further results for the gradient: mean[N, groups] and
// rstd[N, groups]. With C groups it is instance normalization.
//   group_norm_input_gradient(dy, x, mean, rstd, [w]) -> dx
//   group_norm_weight_gradient(dy, x, mean, rstd) -> dw[C], db[C]
//   group_norm_backward(dy, x, mean, rstd, w) -> dx, dw, db: both in one pass, for GPUs; made by
//     graph/passes/fuse.cpp
#include <cmath>

#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

// The groups of all samples as rows. each_of() calls f(offset in x, channel) for each element of a
// row.
struct Groups {
  Image x;
  int64_t groups, channels;  // channels per group
  Groups(const TensorView& view, const GroupNorm& s)
      : x(view), groups(s.groups), channels(x.c / s.groups) {}
  size_t rows() const { return static_cast<size_t>(x.n * groups); }
  double width() const { return static_cast<double>(channels * x.h * x.w); }
  template <class F>
  void each_of(size_t row, F f) const {
    const int64_t n = static_cast<int64_t>(row) / groups, g = static_cast<int64_t>(row) % groups;
    for (int64_t c = g * channels; c < (g + 1) * channels; ++c)
      for (int64_t h = 0; h < x.h; ++h)
        for (int64_t w = 0; w < x.w; ++w) f(x.at(n, c, h, w), static_cast<size_t>(c));
  }
};

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  need_real("group_norm", in[0]);
  const int64_t groups = settings<GroupNorm>(attrs).groups;
  const Shape& x = in[0].shape;
  if (x.rank() < 2 || groups < 1 || x[1] % groups != 0)
    fail(Fault::spec, "group_norm: the channels of {} cannot be split into {} groups", x.str(),
         groups);
  for (const TensorDesc& p : in.subspan(1))
    if (p.shape != Shape{x[1]})
      fail(Fault::spec, "group_norm: parameter {} does not fit the channels of {}", p.shape.str(),
           x.str());
  const TensorDesc per_group{full(in[0].dtype), {x[0], groups}};
  return {in[0], per_group, per_group};
}

// Checks dy, x, mean, rstd and perhaps w.
void need_gradient(std::string_view op, std::span<const TensorDesc> in, const std::any& attrs) {
  const Shape& x = in[1].shape;
  const int64_t groups = settings<GroupNorm>(attrs).groups;
  const Shape per_group{x[0], groups};
  require(in[0] == in[1], fmt::format("{}: dy is like x", op));
  require(x.rank() >= 2 && groups >= 1 && x[1] % groups == 0,
          fmt::format("{}: the channels make groups", op));
  require(in[2].shape == per_group && in[3].shape == per_group,
          fmt::format("{}: each group has its mean and deviation", op));
  require(in.size() < 5 || in[4].shape == Shape{x[1]}, fmt::format("{}: each channel its w", op));
}

std::vector<TensorDesc> infer_input(std::span<const TensorDesc> in, const std::any& attrs) {
  need_gradient("group_norm_input_gradient", in, attrs);
  return {in[0]};
}

std::vector<TensorDesc> infer_weight(std::span<const TensorDesc> in, const std::any& attrs) {
  need_gradient("group_norm_weight_gradient", in, attrs);
  const TensorDesc d{full(in[0].dtype), {in[0].shape[1]}};
  return {d, d};
}

std::vector<TensorDesc> infer_backward(std::span<const TensorDesc> in, const std::any& attrs) {
  std::vector<TensorDesc> out = infer_input(in, attrs);
  for (const TensorDesc& d : infer_weight(in.first(4), attrs)) out.push_back(d);
  require(in[4] == out[1], "group_norm_backward: w is like its gradient");
  return out;
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  std::vector<ValueId> in = {dy[0], n.in[0], n.out[1], n.out[2]};
  std::vector<ValueId> out(n.in.size(), kNoValue);
  if (n.in.size() > 1) {
    out[1] = g.apply("group_norm_weight_gradient", in, n.attrs);
    if (n.in.size() > 2) out[2] = g.graph().nodes.back().out[1];
    in.push_back(n.in[1]);
  }
  out[0] = g.apply("group_norm_input_gradient", in, n.attrs);
  return out;
}

void forward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<GroupNorm>(attrs);
  const Groups g(args.in[0], s);
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto w = args.in.size() > 1 ? args.in[1].as<const T>() : std::span<const T>{};
    const auto b = args.in.size() > 2 ? args.in[2].as<const T>() : std::span<const T>{};
    const auto y = args.out[0].as<T>(), mean = args.out[1].as<T>(), rstd = args.out[2].as<T>();
    for (size_t r = 0; r < g.rows(); ++r) {
      double sum = 0, squares = 0;
      g.each_of(r, [&](size_t i, size_t) { sum += static_cast<double>(x[i]); });
      const double m = sum / g.width();
      g.each_of(r, [&](size_t i, size_t) {
        const double d = static_cast<double>(x[i]) - m;
        squares += d * d;
      });
      const double rs = 1 / std::sqrt(squares / g.width() + s.eps);
      g.each_of(r, [&](size_t i, size_t c) {
        y[i] = static_cast<T>((static_cast<double>(x[i]) - m) * rs *
                                  (w.empty() ? 1 : static_cast<double>(w[c])) +
                              (b.empty() ? 0 : static_cast<double>(b[c])));
      });
      mean[r] = static_cast<T>(m);
      rstd[r] = static_cast<T>(rs);
    }
  });
}

// With g = dy * w and h the normalized x: dx = rstd * (g - mean(g) - h * mean(g * h)).
void input_gradient(const KernelArgs& args, const std::any& attrs) {
  const Groups groups(args.in[0], settings<GroupNorm>(attrs));
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const auto mean = args.in[2].as<const T>(), rstd = args.in[3].as<const T>();
    const auto w = args.in.size() > 4 ? args.in[4].as<const T>() : std::span<const T>{};
    const auto dx = args.out[0].as<T>();
    const double k = groups.width();
    for (size_t r = 0; r < groups.rows(); ++r) {
      const double m = static_cast<double>(mean[r]), s = static_cast<double>(rstd[r]);
      const auto g = [&](size_t i, size_t c) {
        return static_cast<double>(dy[i]) * (w.empty() ? 1 : static_cast<double>(w[c]));
      };
      const auto h = [&](size_t i) { return (static_cast<double>(x[i]) - m) * s; };
      double sum = 0, along_h = 0;
      groups.each_of(r, [&](size_t i, size_t c) {
        sum += g(i, c);
        along_h += g(i, c) * h(i);
      });
      groups.each_of(r, [&](size_t i, size_t c) {
        dx[i] = static_cast<T>(s * (g(i, c) - sum / k - h(i) * along_h / k));
      });
    }
  });
}

void weight_gradient(const KernelArgs& args, const std::any& attrs) {
  const Groups groups(args.in[0], settings<GroupNorm>(attrs));
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>(), x = args.in[1].as<const T>();
    const auto mean = args.in[2].as<const T>(), rstd = args.in[3].as<const T>();
    const auto dw = args.out[0].as<T>(), db = args.out[1].as<T>();
    std::vector<double> along_h(dw.size()), sum(db.size());
    for (size_t r = 0; r < groups.rows(); ++r)
      groups.each_of(r, [&](size_t i, size_t c) {
        const double d = static_cast<double>(dy[i]);
        sum[c] += d;
        along_h[c] += d * (static_cast<double>(x[i]) - static_cast<double>(mean[r])) *
                      static_cast<double>(rstd[r]);
      });
    for (size_t c = 0; c < dw.size(); ++c) {
      dw[c] = static_cast<T>(along_h[c]);
      db[c] = static_cast<T>(sum[c]);
    }
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  weight_gradient({.in = args.in.first(4), .out = args.out.subspan(1), .context = args.context},
                  attrs);
  input_gradient({.in = args.in, .out = args.out.first(1), .context = args.context}, attrs);
}

struct Case {
  Shape x;
  GroupNorm s;
};
const Case kCases[] = {{{2, 4, 3, 5}, {2, 1e-3}},
                       {{3, 3, 2, 4}, {3, 1e-3}},
                       {{2, 6, 7}, {1, 1e-3}},
                       {{2, 34}, {2, 1e-3}},
                       {{1, 32, 2, 3}, {4, 1e-3}}};

Shape of_rows(const Case& c) { return {c.x[0], c.s.groups}; }

std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const Case& c : kCases) {
    const std::vector<TensorDesc> results = {f32(c.x), f32(of_rows(c)), f32(of_rows(c))};
    const TensorDesc w = f32({c.x[1]});
    out.push_back({{"group_norm", {f32(c.x)}, results, c.s}});
    out.push_back({{"group_norm", {f32(c.x), w}, results, c.s}});
    out.push_back({{"group_norm", {f32(c.x), w, w}, results, c.s}});
  }
  return out;
}

std::vector<Sample> input_samples() {
  std::vector<Sample> out;
  for (const Case& c : kCases) {
    std::vector<TensorDesc> in = {f32(c.x), f32(c.x), f32(of_rows(c)), f32(of_rows(c))};
    const std::vector<Sample::Range> ranges = {{}, {}, {-1, 1}, {0.5, 2}};
    out.push_back({{"group_norm_input_gradient", in, {f32(c.x)}, c.s}, ranges});
    in.push_back(f32({c.x[1]}));
    out.push_back({{"group_norm_input_gradient", in, {f32(c.x)}, c.s}, ranges});
  }
  return out;
}

std::vector<Sample> weight_samples() {
  std::vector<Sample> out;
  for (const Case& c : kCases)
    out.push_back({{"group_norm_weight_gradient",
                    {f32(c.x), f32(c.x), f32(of_rows(c)), f32(of_rows(c))},
                    {f32({c.x[1]}), f32({c.x[1]})},
                    c.s},
                   {{}, {}, {-1, 1}, {0.5, 2}}});
  return out;
}

std::vector<Sample> backward_samples() {
  std::vector<Sample> out;
  for (const Case& c : kCases)
    out.push_back({{"group_norm_backward",
                    {f32(c.x), f32(c.x), f32(of_rows(c)), f32(of_rows(c)), f32({c.x[1]})},
                    {f32(c.x), f32({c.x[1]}), f32({c.x[1]})},
                    c.s},
                   {{}, {}, {-1, 1}, {0.5, 2}}});
  return out;
}

}  // namespace

OperatorType group_norm() {
  return on_images({.name = "group_norm",
                    .precision = Precision::full_on_cuda,
                    .infer = infer,
                    .gradient = gradient,
                    .reference = forward,
                    .samples = samples});
}

OperatorType group_norm_input_gradient() {
  return on_images({.name = "group_norm_input_gradient",
                    .precision = Precision::full,
                    .infer = infer_input,
                    .reference = input_gradient,
                    .samples = input_samples,
                    .backward = true});
}

OperatorType group_norm_weight_gradient() {
  return on_images({.name = "group_norm_weight_gradient",
                    .precision = Precision::full,
                    .infer = infer_weight,
                    .reference = weight_gradient,
                    .samples = weight_samples,
                    .flops = elements_of_first_input,
                    .backward = true});
}

OperatorType group_norm_backward() {
  return on_images({.name = "group_norm_backward",
                    .precision = Precision::full,
                    .infer = infer_backward,
                    .reference = backward,
                    .samples = backward_samples,
                    .flops = elements_of_first_input,
                    .backward = true});
}

}  // namespace dpt::operators
