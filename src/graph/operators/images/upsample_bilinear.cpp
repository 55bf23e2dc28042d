// upsample_bilinear: y[N, C, H', W'] by linear interpolation of x[N, C, H, W] along rows and
// columns (graph/formulas/resample.h). Positions are computed in the type of x, as by PyTorch.
//   upsample_bilinear_gradient(dy) -> dx[N, C, Resize::extents]
#include "graph/formulas/resample.h"
#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

constexpr std::string_view kNoPixels = "an empty image cannot be upsampled";

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Resize& attrs) {
  return infer_resized("upsample_bilinear", kNoPixels, in, attrs);
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Resize& attrs) {
  return infer_resized("upsample_bilinear_gradient", kNoPixels, in, attrs);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  Resize s = settings<Resize>(n.attrs);
  s.extents = Image(g.shape(n.in[0])).extents();
  return {g.apply("upsample_bilinear_gradient", {dy[0]}, s)};
}

template <class T>
std::vector<formula::Blend<T>> blends(int64_t in, int64_t out, double scale, bool align_corners) {
  const T ratio = formula::linear_ratio<T>(in, out, scale, align_corners);
  std::vector<formula::Blend<T>> all;
  for (int64_t i = 0; i < out; ++i)
    all.push_back(formula::linear_blend<T>(i, in, out, ratio, align_corners));
  return all;
}

// Calls f(offset in x, offset in y, weight) for the four sources of each element of y.
template <class T, class F>
void each_source(const Image& x, const Image& y, const Resize& s, F f) {
  const auto rows = blends<T>(x.h, y.h, s.scale[0], s.align_corners),
             columns = blends<T>(x.w, y.w, s.scale[1], s.align_corners);
  y.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
    const auto &row = rows[static_cast<size_t>(h)], &column = columns[static_cast<size_t>(w)];
    const auto down = static_cast<double>(row.weight), right = static_cast<double>(column.weight);
    const size_t to = y.at(n, c, h, w);
    f(x.at(n, c, row.low, column.low), to, (1 - down) * (1 - right));
    f(x.at(n, c, row.low, column.high), to, (1 - down) * right);
    f(x.at(n, c, row.high, column.low), to, down * (1 - right));
    f(x.at(n, c, row.high, column.high), to, down * right);
  });
}

void forward(const KernelArgs& args, const Resize& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    std::vector<double> y(static_cast<size_t>(args.out[0].desc.shape.elements()));
    each_source<T>(
        Image(args.in[0]), Image(args.out[0]), attrs,
        [&](size_t i, size_t k, double weight) { y[k] += weight * static_cast<double>(x[i]); });
    store(y, args.out[0].as<T>());
  });
}

void backward(const KernelArgs& args, const Resize& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    std::vector<double> dx(static_cast<size_t>(args.out[0].desc.shape.elements()));
    each_source<T>(
        Image(args.out[0]), Image(args.in[0]), attrs,
        [&](size_t i, size_t k, double weight) { dx[i] += weight * static_cast<double>(dy[k]); });
    store(dx, args.out[0].as<T>());
  });
}

double four_products(std::span<const TensorDesc>, std::span<const TensorDesc> out) {
  return 8 * static_cast<double>(out[0].shape.elements());
}

}  // namespace

Operators upsample_bilinear() {
  return {{.name = "upsample_bilinear",
           .precision = Precision::full_on_cuda,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .flops = four_products,
           .layouts = Layouts::images},
          {.name = "upsample_bilinear_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
