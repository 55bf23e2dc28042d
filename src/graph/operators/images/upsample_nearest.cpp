// upsample_nearest: row i of y[N, C, H', W'] is row floor(i * r) of x[N, C, H, W], computed in
// float32, with r = 1 / scale, or H / H' if no scale is given; columns likewise. With Resize::exact
// it is row floor((i + 1/2) * r).
//   upsample_nearest_gradient(dy) -> dx[N, C, Resize::extents]
#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

constexpr std::string_view kNothing = "an empty image cannot be upsampled";

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Resize& attrs) {
  return infer_resized("upsample_nearest", kNothing, in, attrs);
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Resize& attrs) {
  return infer_resized("upsample_nearest_gradient", kNothing, in, attrs);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  Resize s = settings<Resize>(n.attrs);
  s.extents = Image(g.shape(n.in[0])).extents();
  return {g.apply("upsample_nearest_gradient", {dy[0]}, s)};
}

// Calls f(offset in x, offset in y) for each element of y.
template <class F>
void each_element(const Image& x, const Image& y, const Resize& s, F f) {
  const std::vector<int64_t> rows = nearest_sources(x.h, y.h, s, 0),
                             columns = nearest_sources(x.w, y.w, s, 1);
  y.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
    f(x.at(n, c, rows[static_cast<size_t>(h)], columns[static_cast<size_t>(w)]), y.at(n, c, h, w));
  });
}

void forward(const KernelArgs& args, const Resize& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    each_element(Image(args.in[0]), Image(args.out[0]), attrs,
                 [&](size_t i, size_t k) { y[k] = x[i]; });
  });
}

void backward(const KernelArgs& args, const Resize& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    std::vector<double> dx(static_cast<size_t>(args.out[0].desc.shape.elements()));
    each_element(Image(args.out[0]), Image(args.in[0]), attrs,
                 [&](size_t i, size_t k) { dx[i] += static_cast<double>(dy[k]); });
    store(dx, args.out[0].as<T>());
  });
}

}  // namespace

Operators upsample_nearest() {
  return {{.name = "upsample_nearest",
           .precision = Precision::full_on_cuda,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .layouts = Layouts::images,
           .traits = Trait::selects},
          {.name = "upsample_nearest_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
