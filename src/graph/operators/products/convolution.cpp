// convolution: y[N, O, H', W'] = the sum over windows of x[N, C, H, W] * w[O, C / groups, kh, kw],
// plus the optional b[O]; H' = (H + before + behind - dilation (kh - 1) - 1) / stride + 1. Values
// [N, C, W] have weights [O, C / groups, kw], and [N, C, D, H, W] [O, C / groups, kd, kh, kw].
// convolution_transpose: y[N, C, H, W] from x[N, O, H', W'] and the same w, plus the optional b[C];
// H is the least height that convolution maps to H', plus output_padding. Each is the input
// gradient of the other.
//   convolution_weight_gradient(dy[N, O, H', W'], x[N, C, H, W]) -> dw
//   sum_channels(dy[N, C, ...]) -> db[C]: the sum over all elements of a channel
#include "base/count.h"
#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

void need_weight(std::string_view op, std::span<const TensorDesc> in, const Convolution& s,
                 int64_t channels, int64_t bias) {
  const Shape &x = in[0].shape, &w = in[1].shape;
  if (w.rank() != x.rank() || channels != x[1] || w[0] % s.groups != 0 ||
      extents_of(w) != s.window.kernel)
    fail(Fault::spec, "{}: input {} does not fit weight {} in {}", op, x.str(), w.str(),
         counted(s.groups, "group"));
  if (in.size() > 2 && in[2].shape != Shape{bias})
    fail(Fault::spec, "{}: bias {} does not fit weight {} in {}", op, in[2].shape.str(), w.str(),
         counted(s.groups, "group"));
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Convolution& s) {
  need_image("convolution", in[0]);
  const Shape &x = in[0].shape, &w = in[1].shape;
  need_weight("convolution", in, s, (Checked(w[1]) * s.groups).value(), w[0]);
  return {{in[0].dtype, image_shape(x, w[0], window_counts("convolution", x, s.window))}};
}

std::vector<TensorDesc> infer_transpose(std::span<const TensorDesc> in, const Convolution& s) {
  need_image("convolution_transpose", in[0]);
  const Shape &x = in[0].shape, &w = in[1].shape;
  need_weight("convolution_transpose", in, s, w[0], (Checked(w[1]) * s.groups).value());
  Extents out = extents_of(x);
  for (size_t i = 0; i < 3; ++i) {
    if (out[i] < 1) fail(Fault::spec, "convolution_transpose: the images of {} are empty", x.str());
    out[i] = ((Checked(out[i]) - 1) * s.window.stride[i] + covered(s.window, i) -
              s.window.before[i] - s.window.behind[i] + s.output_padding[i])
                 .value();
    if (out[i] < 1)
      fail(Fault::spec, "convolution_transpose: the padding leaves nothing of {}", x.str());
  }
  return {{in[0].dtype, image_shape(x, (Checked(w[1]) * s.groups).value(), out)}};
}

std::vector<TensorDesc> infer_weight(std::span<const TensorDesc> in, const Convolution& s) {
  const Shape &dy = in[0].shape, &x = in[1].shape;
  need_image("convolution_weight_gradient", in[1]);
  if (dy.rank() != x.rank() || dy[0] != x[0] || x[1] % s.groups != 0 || dy[1] % s.groups != 0 ||
      extents_of(dy) != window_counts("convolution_weight_gradient", x, s.window))
    fail(Fault::spec, "convolution_weight_gradient: {} does not fit input {}", dy.str(), x.str());
  return {{full(in[0].dtype), image_shape(x, x[1] / s.groups, s.window.kernel).with(0, dy[1])}};
}

std::vector<TensorDesc> infer_sum(std::span<const TensorDesc> in) {
  require(in[0].shape.rank() >= 2, "sum_channels: dy has channels");
  return {{full(in[0].dtype), {in[0].shape[1]}}};
}

template <bool kTransposed>
std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const ValueId x = n.in[0], w = n.in[1];
  Convolution s = settings<Convolution>(n.attrs);
  std::vector<ValueId> out;
  if (!kTransposed) {
    // Elements at the end of each extent of x that no window covers, because of the stride.
    const Extents in = extents_of(g.shape(x));
    for (size_t i = 0; i < 3; ++i)
      s.output_padding[i] =
          (in[i] + s.window.before[i] + s.window.behind[i] - covered(s.window, i)) %
          s.window.stride[i];
    out = {g.apply("convolution_transpose", {dy[0], w}, s),
           g.apply("convolution_weight_gradient", {dy[0], x}, n.attrs)};
  } else {
    // output_padding may exceed the stride if the dilation does. Whole strides of it would add
    // windows, so the padding is reduced by them.
    for (size_t i = 0; i < 3; ++i)
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
  y.each([&](int64_t n, int64_t o, const Extents& p) {
    const size_t to = y.at(n, o, p);
    each_position(inside(k, p, x.extents), k.dilation, [&](const Extents& from) {
      Extents tap{};
      for (size_t i = 0; i < 3; ++i)
        tap[i] = (from[i] + k.before[i] - p[i] * k.stride[i]) / k.dilation[i];
      const size_t at_x = x.at(n, o / outs * w.c, from), at_w = w.at(o, 0, tap);
      for (size_t c = 0; c < channels; ++c) f(at_x + c * x_step, at_w + c * w_step, to);
    });
  });
}

void forward(const KernelArgs& args, const Convolution& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const T *const x = args.in[0].as<const T>().data(), *const w = args.in[1].as<const T>().data();
    std::vector<double> y = filled_with_bias<T>(args, 2);
    double* const sums = y.data();
    each_product(Image(args.in[0]), Image(args.in[1]), Image(args.out[0]), attrs,
                 [=](size_t i, size_t j, size_t k) {
                   sums[k] += static_cast<double>(x[i]) * static_cast<double>(w[j]);
                 });
    store(y, args.out[0].as<T>());
  });
}

void transpose(const KernelArgs& args, const Convolution& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const T *const y = args.in[0].as<const T>().data(), *const w = args.in[1].as<const T>().data();
    std::vector<double> x = filled_with_bias<T>(args, 2);
    double* const sums = x.data();
    each_product(Image(args.out[0]), Image(args.in[1]), Image(args.in[0]), attrs,
                 [=](size_t i, size_t j, size_t k) {
                   sums[i] += static_cast<double>(y[k]) * static_cast<double>(w[j]);
                 });
    store(x, args.out[0].as<T>());
  });
}

void weight_gradient(const KernelArgs& args, const Convolution& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const T *const y = args.in[0].as<const T>().data(), *const x = args.in[1].as<const T>().data();
    std::vector<double> w(static_cast<size_t>(args.out[0].desc.shape.elements()));
    double* const sums = w.data();
    each_product(Image(args.in[1]), Image(args.out[0]), Image(args.in[0]), attrs,
                 [=](size_t i, size_t j, size_t k) {
                   sums[j] += static_cast<double>(x[i]) * static_cast<double>(y[k]);
                 });
    store(w, args.out[0].as<T>());
  });
}

void sum(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    const Image image(args.in[0]);
    std::vector<double> sums(static_cast<size_t>(image.c));
    image.each([&](int64_t n, int64_t c, const Extents& p) {
      sums[static_cast<size_t>(c)] += static_cast<double>(dy[image.at(n, c, p)]);
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

}  // namespace

Operators convolution() {
  return {{.name = "convolution",
           .precision = Precision::compute,
           .infer = typed<infer>,
           .gradient = gradient<false>,
           .reference = typed<forward>,
           .flops = flops,
           .layouts = Layouts::images,
           .weight = {.index = 1}},
          {.name = "convolution_transpose",
           .precision = Precision::compute,
           .infer = typed<infer_transpose>,
           .gradient = gradient<true>,
           .reference = typed<transpose>,
           .flops = transpose_flops,
           .layouts = Layouts::images,
           .weight = {.index = 1}},
          {.name = "convolution_weight_gradient",
           .precision = Precision::compute,
           .infer = typed<infer_weight>,
           .reference = typed<weight_gradient>,
           .flops = weight_flops,
           .layouts = Layouts::images,
           .weight = {.index = 2},
           .traits = Trait::backward},
          {.name = "sum_channels",
           .precision = Precision::follow,
           .infer = typed<infer_sum>,
           .reference = typed<sum>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images}};
}

}  // namespace dpt::operators
