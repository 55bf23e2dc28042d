// convolution: y[N, O, H', W'] = the sum over windows of x[N, C, H, W] * w[O, C / groups, kh, kw],
// plus the optional b[O]; H' = (H + before + behind - dilation (kh - 1) - 1) / stride + 1.
// convolution_transpose: y[N, C, H, W] from x[N, O, H', W'] and the same w, plus the optional b[C];
// H is the least height that convolution maps to H', plus output_padding. Each is the input
// gradient of the other.
//   convolution_weight_gradient(dy[N, O, H', W'], x[N, C, H, W]) -> dw
//   sum_channels(dy[N, C, ...]) -> db[C]: the sum over all elements of a channel
// Values [N, C, W] have weights [O, C / groups, kw].
#include "base/count.h"
#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

Pair kernel_of(const Shape& weight) { return Image(weight).extents(); }

void need_weight(std::string_view op, std::span<const TensorDesc> in, const Convolution& s,
                 int64_t channels, int64_t bias) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  if (w.rank() != x.rank() || channels != x[1] || w[0] % s.groups != 0 ||
      kernel_of(w) != s.window.kernel)
    fail(Fault::spec, "{}: input {} does not fit weight {} in {}", op, x.str(), w.str(),
         counted(s.groups, "group"));
  if (in.size() > 2 && in[2].shape != Shape{bias})
    fail(Fault::spec, "{}: bias {} does not fit weight {} in {}", op, in[2].shape.str(), w.str(),
         counted(s.groups, "group"));
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  const auto& s = settings<Convolution>(attrs);
  need_image("convolution", in[0]);
  const Shape &x = in[0].shape, &w = in[1].shape;
  need_weight("convolution", in, s, (Checked(w[1]) * s.groups).value(), w[0]);
  return {{in[0].dtype, image_shape(x, w[0], window_counts("convolution", x, s.window))}};
}

std::vector<TensorDesc> infer_transpose(std::span<const TensorDesc> in, const std::any& attrs) {
  const auto& s = settings<Convolution>(attrs);
  need_image("convolution_transpose", in[0]);
  const Shape &x = in[0].shape, &w = in[1].shape;
  need_weight("convolution_transpose", in, s, w[0], (Checked(w[1]) * s.groups).value());
  Pair out = Image(x).extents();
  for (size_t i = 0; i < 2; ++i) {
    if (out[i] < 1) fail(Fault::spec, "convolution_transpose: the images of {} are empty", x.str());
    out[i] = ((Checked(out[i]) - 1) * s.window.stride[i] + covered(s.window, i) -
              s.window.before[i] - s.window.behind[i] + s.output_padding[i])
                 .value();
    if (out[i] < 1)
      fail(Fault::spec, "convolution_transpose: the padding leaves nothing of {}", x.str());
  }
  return {{in[0].dtype, image_shape(x, (Checked(w[1]) * s.groups).value(), out)}};
}

std::vector<TensorDesc> infer_weight(std::span<const TensorDesc> in, const std::any& attrs) {
  const auto& s = settings<Convolution>(attrs);
  const Shape &dy = in[0].shape, &x = in[1].shape;
  need_image("convolution_weight_gradient", in[1]);
  if (dy.rank() != x.rank() || dy[0] != x[0] || x[1] % s.groups != 0 || dy[1] % s.groups != 0 ||
      Image(dy).extents() != window_counts("convolution_weight_gradient", x, s.window))
    fail(Fault::spec, "convolution_weight_gradient: {} does not fit input {}", dy.str(), x.str());
  const Pair& k = s.window.kernel;
  const int64_t channels = x[1] / s.groups;
  return {{full(in[0].dtype),
           x.rank() == 4 ? Shape{dy[1], channels, k[0], k[1]} : Shape{dy[1], channels, k[1]}}};
}

std::vector<TensorDesc> infer_sum(std::span<const TensorDesc> in, const std::any&) {
  require(in[0].shape.rank() >= 2, "sum_channels: dy has channels");
  return {{full(in[0].dtype), {in[0].shape[1]}}};
}

template <bool kTransposed>
std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const ValueId x = n.in[0], w = n.in[1];
  Convolution s = settings<Convolution>(n.attrs);
  std::vector<ValueId> out;
  if (!kTransposed) {
    // Rows and columns at the end of x that no window covers, because of the stride.
    const Pair in = Image(g.shape(x)).extents();
    for (size_t i = 0; i < 2; ++i)
      s.output_padding[i] =
          (in[i] + s.window.before[i] + s.window.behind[i] - covered(s.window, i)) %
          s.window.stride[i];
    out = {g.apply("convolution_transpose", {dy[0], w}, s),
           g.apply("convolution_weight_gradient", {dy[0], x}, n.attrs)};
  } else {
    // output_padding may exceed the stride if the dilation does. Whole strides of it would add
    // windows, so the padding is reduced by them.
    for (size_t i = 0; i < 2; ++i)
      s.window.behind[i] -= s.output_padding[i] / s.window.stride[i] * s.window.stride[i];
    out = {g.apply("convolution", {dy[0], w}, s),
           g.apply("convolution_weight_gradient", {x, dy[0]}, s)};
  }
  if (n.in.size() > 2) out.push_back(g.apply("sum_channels", {dy[0]}));
  return out;
}

// Calls f(offset in x, offset in w, offset in y) for each product of the convolution y of x and w.
template <class F>
void each_product(const Image& x, const Image& w, const Image& y, const Convolution& s, F f) {
  const Window& k = s.window;
  const int64_t outs = y.c / s.groups;
  const auto channels = static_cast<size_t>(w.c);
  const size_t x_step = x.channel_step(), w_step = w.channel_step();
  for (int64_t n = 0; n < y.n; ++n)
    for (int64_t o = 0; o < y.c; ++o)
      for (int64_t h = 0; h < y.h; ++h)
        for (int64_t v = 0; v < y.w; ++v) {
          const size_t to = y.at(n, o, h, v);
          for (int64_t kh = 0; kh < w.h; ++kh) {
            const int64_t xh = h * k.stride[0] - k.before[0] + kh * k.dilation[0];
            if (xh < 0 || xh >= x.h) continue;
            for (int64_t kw = 0; kw < w.w; ++kw) {
              const int64_t xw = v * k.stride[1] - k.before[1] + kw * k.dilation[1];
              if (xw < 0 || xw >= x.w) continue;
              const size_t at_x = x.at(n, o / outs * w.c, xh, xw), at_w = w.at(o, 0, kh, kw);
              for (size_t c = 0; c < channels; ++c) f(at_x + c * x_step, at_w + c * w_step, to);
            }
          }
        }
}

void forward(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const T *const x = args.in[0].as<const T>().data(), *const w = args.in[1].as<const T>().data();
    std::vector<double> y = filled_with_bias<T>(args, 2);
    double* const sums = y.data();
    each_product(Image(args.in[0]), Image(args.in[1]), Image(args.out[0]),
                 settings<Convolution>(attrs), [=](size_t i, size_t j, size_t k) {
                   sums[k] += static_cast<double>(x[i]) * static_cast<double>(w[j]);
                 });
    store(y, args.out[0].as<T>());
  });
}

void transpose(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const T *const y = args.in[0].as<const T>().data(), *const w = args.in[1].as<const T>().data();
    std::vector<double> x = filled_with_bias<T>(args, 2);
    double* const sums = x.data();
    each_product(Image(args.out[0]), Image(args.in[1]), Image(args.in[0]),
                 settings<Convolution>(attrs), [=](size_t i, size_t j, size_t k) {
                   sums[i] += static_cast<double>(y[k]) * static_cast<double>(w[j]);
                 });
    store(x, args.out[0].as<T>());
  });
}

void weight_gradient(const KernelArgs& args, const std::any& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const T *const y = args.in[0].as<const T>().data(), *const x = args.in[1].as<const T>().data();
    std::vector<double> w(static_cast<size_t>(args.out[0].desc.shape.elements()));
    double* const sums = w.data();
    each_product(Image(args.in[1]), Image(args.out[0]), Image(args.in[0]),
                 settings<Convolution>(attrs), [=](size_t i, size_t j, size_t k) {
                   sums[j] += static_cast<double>(x[i]) * static_cast<double>(y[k]);
                 });
    store(w, args.out[0].as<T>());
  });
}

void sum(const KernelArgs& args, const std::any&) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    const Image image(args.in[0]);
    std::vector<double> sums(static_cast<size_t>(image.c));
    image.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      sums[static_cast<size_t>(c)] += static_cast<double>(dy[image.at(n, c, h, w)]);
    });
    store(sums, args.out[0].as<T>());
  });
}

// Two operations per product, those with padding included. Each element of the tensor with w's
// first extent as channels takes part in w.tail(1) products.
double flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) {
  return 2.0 * static_cast<double>(out[0].shape.elements()) *
         static_cast<double>(in[1].shape.tail(1).elements());
}
double transpose_flops(std::span<const TensorDesc> in, std::span<const TensorDesc>) {
  return 2.0 * static_cast<double>(in[0].shape.elements()) *
         static_cast<double>(in[1].shape.tail(1).elements());
}
double weight_flops(std::span<const TensorDesc> in, std::span<const TensorDesc> out) {
  return 2.0 * static_cast<double>(in[0].shape.elements()) *
         static_cast<double>(out[0].shape.tail(1).elements());
}

// The shapes of a convolution and its attributes.
struct Case {
  Shape x, w, y;
  Convolution s{};
};

std::vector<Case> cases() {
  return {
      {{2, 3, 5, 4}, {4, 3, 3, 3}, {2, 4, 3, 2}, {{.kernel = {3, 3}}}},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}, {{.kernel = {1, 1}}}},
      {{2, 33, 3, 2}, {37, 33, 1, 1}, {2, 37, 3, 2}, {{.kernel = {1, 1}}}},
      {{2, 4, 7, 6},
       {6, 2, 3, 2},
       {2, 6, 4, 4},
       {{.kernel = {3, 2}, .stride = {2, 2}, .before = {1, 1}, .behind = {1, 1}}, 2}},
      {{1, 3, 6, 7},
       {3, 1, 2, 3},
       {1, 3, 6, 7},
       {{.kernel = {2, 3}, .dilation = {1, 2}, .before = {0, 2}, .behind = {1, 2}}, 3}},
      {{2, 2, 8, 9},
       {5, 2, 3, 3},
       {2, 5, 2, 3},
       {{.kernel = {3, 3}, .stride = {3, 2}, .dilation = {2, 2}, .behind = {0, 1}}}},
      {{3, 2, 9},
       {4, 2, 3},
       {3, 4, 5},
       {{.kernel = {1, 3}, .stride = {1, 2}, .before = {0, 1}, .behind = {0, 1}}}},
      {{2, 4, 6}, {4, 1, 4}, {2, 4, 3}, {{.kernel = {1, 4}}, 4}},
  };
}

std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const Case& c : cases()) {
    std::vector<TensorDesc> in = {f32(c.x), f32(c.w)};
    out.push_back({{"convolution", in, {f32(c.y)}, c.s}});
    in.push_back(f32({c.w[0]}));
    out.push_back({{"convolution", in, {f32(c.y)}, c.s}});
  }
  return out;
}

std::vector<Sample> transpose_samples() {
  std::vector<Sample> out;
  for (Case c : cases()) {
    const Pair x = Image(c.x).extents();
    const Window& k = c.s.window;
    for (size_t i = 0; i < 2; ++i)
      c.s.output_padding[i] = (x[i] + k.before[i] + k.behind[i] - covered(k, i)) % k.stride[i];
    std::vector<TensorDesc> in = {f32(c.y), f32(c.w)};
    out.push_back({{"convolution_transpose", in, {f32(c.x)}, c.s}});
    in.push_back(f32({c.x[1]}));
    out.push_back({{"convolution_transpose", in, {f32(c.x)}, c.s}});
  }
  const Window apart{.kernel = {1, 3}, .stride = {1, 2}, .dilation = {1, 4}};
  out.push_back({{"convolution_transpose",
                  {f32({2, 3, 4}), f32({3, 2, 3})},
                  {f32({2, 2, 18})},
                  Convolution{.window = apart, .groups = 1, .output_padding = {0, 3}}}});
  return out;
}

std::vector<Sample> weight_samples() {
  std::vector<Sample> out;
  for (const Case& c : cases())
    out.push_back({{"convolution_weight_gradient", {f32(c.y), f32(c.x)}, {f32(c.w)}, c.s}});
  return out;
}

std::vector<Sample> sum_samples() {
  return {
      {{"sum_channels", {f32({3, 2, 5, 4})}, {f32({2})}, {}}},
      {{"sum_channels", {f32({2, 19, 7})}, {f32({19})}, {}}},
      {{"sum_channels", {f32({17, 33})}, {f32({33})}, {}}},
  };
}

}  // namespace

OperatorType convolution() {
  return on_images({.name = "convolution",
                    .precision = Precision::compute,
                    .infer = infer,
                    .gradient = gradient<false>,
                    .reference = forward,
                    .samples = samples,
                    .flops = flops},
                   1);
}

OperatorType convolution_transpose() {
  return on_images({.name = "convolution_transpose",
                    .precision = Precision::compute,
                    .infer = infer_transpose,
                    .gradient = gradient<true>,
                    .reference = transpose,
                    .samples = transpose_samples,
                    .flops = transpose_flops},
                   1);
}

OperatorType convolution_weight_gradient() {
  return on_images({.name = "convolution_weight_gradient",
                    .precision = Precision::compute,
                    .infer = infer_weight,
                    .reference = weight_gradient,
                    .samples = weight_samples,
                    .flops = weight_flops,
                    .backward = true},
                   2);
}

OperatorType sum_channels() {
  return on_images({.name = "sum_channels",
                    .precision = Precision::follow,
                    .infer = infer_sum,
                    .reference = sum,
                    .samples = sum_samples,
                    .flops = elements_of_first_input});
}

}  // namespace dpt::operators
