// Volumes [N, C, D, H, W] as images, one for each position of a window of K planes along the depth:
//   unfold_depth(x[N, C, D, H, W]) -> y[N D', C K, H, W], K = window.kernel[0]:
//     y[n D' + d, c K + k, h, w] = x[n, c, d stride - before + k dilation, h, w], 0 outside of x
//   fold_depth(y[N D', C K, H, W], [b[C]]) -> x[N, C, D, H, W]: the sums of y over the copies of an
//     element, plus the optional b
// Each is the gradient of the other. A convolution of volumes is one of the images y, whose weight
// [O, C, K, kh, kw] has the memory of [O, C K, kh, kw].
#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

// Images for each sample.
int64_t positions(const Shape& volume, const Window& w) {
  return (padded(w, 0, volume[2]) - covered(w, 0)) / w.stride[0] + 1;
}

std::vector<TensorDesc> infer_unfold(std::span<const TensorDesc> in, const DepthWindow& attrs) {
  const Window& w = attrs.window;
  need_real("unfold_depth", in[0]);
  const Shape& x = in[0].shape;
  if (x.rank() != 5) fail(Fault::spec, "unfold_depth: takes [N, C, D, H, W], not {}", x.str());
  if (padded(w, 0, x[2]) < covered(w, 0))
    fail(Fault::spec, "unfold_depth: a window that covers {} does not fit into {}, padded to {}",
         covered(w, 0), x.str(), padded(w, 0, x[2]));
  return {{in[0].dtype,
           {(Checked(x[0]) * positions(x, w)).value(), (Checked(x[1]) * w.kernel[0]).value(), x[3],
            x[4]}}};
}

std::vector<TensorDesc> infer_fold(std::span<const TensorDesc> in, const DepthWindow& s) {
  need_image("fold_depth", in[0]);
  const Shape& y = in[0].shape;
  const Shape x{s.samples, y[1] / s.window.kernel[0], s.extent, y[2], y.back()};
  if (y.rank() != 4 || y[1] % s.window.kernel[0] != 0 || padded(s.window, 0, s.extent) < 1 ||
      y[0] != s.samples * positions(x, s.window))
    fail(Fault::spec, "fold_depth: {} are not the images of a volume {}", y.str(), x.str());
  require(in.size() < 2 || in[1].shape == Shape{x[1]},
          "fold_depth: the bias has the channels of x");
  return {{in[0].dtype, x}};
}

std::vector<ValueId> gradient_of_unfold(GraphBuilder& g, const GraphNode& n,
                                        std::span<const ValueId> dy) {
  DepthWindow s = settings<DepthWindow>(n.attrs);
  s.samples = g.shape(n.in[0])[0];
  s.extent = g.shape(n.in[0])[2];
  return {g.apply("fold_depth", {dy[0]}, s)};
}

std::vector<ValueId> gradient_of_fold(GraphBuilder& g, const GraphNode& n,
                                      std::span<const ValueId> dy) {
  std::vector<ValueId> out = {g.apply("unfold_depth", {dy[0]}, n.attrs)};
  if (n.in.size() > 1) out.push_back(g.apply("sum_channels", {dy[0]}));
  return out;
}

// Calls f(offset in the volume, offset in the images) for each element of the images; the first is
// -1 for padding.
template <class F>
void each_copy(const TensorDesc& volume, const TensorDesc& images, const Window& w, F f) {
  const Shape& x = volume.shape;
  const auto step = strides_of(x, volume.layout);
  const Image y(images);
  const int64_t depths = positions(x, w), kernel = w.kernel[0];
  y.each([&](int64_t image, int64_t channel, int64_t h, int64_t v) {
    const int64_t plane =
        image % depths * w.stride[0] - w.before[0] + channel % kernel * w.dilation[0];
    const bool inside = plane >= 0 && plane < x[2];
    f(inside ? image / depths * step[0] + channel / kernel * step[1] + plane * step[2] +
                   h * step[3] + v * step[4]
             : -1,
      y.at(image, channel, h, v));
  });
}

template <class T>
void unfold(const KernelArgs& args, const Window& w) {
  const auto x = args.in[0].as<const T>();
  const auto y = args.out[0].as<T>();
  each_copy(args.in[0].desc, args.out[0].desc, w, [&](int64_t from, size_t to) {
    y[to] = from < 0 ? T{} : x[static_cast<size_t>(from)];
  });
}

void forward(const KernelArgs& args, const DepthWindow& attrs) {
  const Window& w = attrs.window;
  if (is_half(args.in[0].desc.dtype)) return unfold<uint16_t>(args, w);
  with_type_of(args.in[0], [&]<class T>(T) { unfold<T>(args, w); });
}

void backward(const KernelArgs& args, const DepthWindow& attrs) {
  const Window& w = attrs.window;
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto y = args.in[0].as<const T>();
    std::vector<double> x = filled_with_bias<T>(args, 1);
    each_copy(args.out[0].desc, args.in[0].desc, w, [&](int64_t to, size_t from) {
      if (to >= 0) x[static_cast<size_t>(to)] += static_cast<double>(y[from]);
    });
    store(x, args.out[0].as<T>());
  });
}

}  // namespace

Operators unfold_depth() {
  return {{.name = "unfold_depth",
           .precision = Precision::follow,
           .infer = typed<infer_unfold>,
           .gradient = gradient_of_unfold,
           .reference = typed<forward>,
           .layouts = Layouts::images,
           .traits = Trait::selects | Trait::halves},
          {.name = "fold_depth",
           .precision = Precision::follow,
           .infer = typed<infer_fold>,
           .gradient = gradient_of_fold,
           .reference = typed<backward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images}};
}

}  // namespace dpt::operators
