// avg_pool: y[N, C, H', W'] = the sum over each window of x[N, C, H, W], divided by
// divisor_override if that is not 0, else by the number of elements in the window. Padding counts
// only with count_include_pad.
//   avg_pool_gradient(dy) -> dx[N, C, Pool::extents]
#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Pool& s) {
  need_image("avg_pool", in[0]);
  const Shape& x = in[0].shape;
  return {{in[0].dtype, image_shape(x, x[1], window_counts("avg_pool", x, s.window, s.ceil_mode))}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Pool& attrs) {
  const Shape& dy = in[0].shape;
  return {{in[0].dtype, image_shape(dy, dy[1], attrs.extents)}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  Pool s = settings<Pool>(n.attrs);
  s.extents = Image(g.shape(n.in[0])).extents();
  return {g.apply("avg_pool_gradient", {dy[0]}, s)};
}

// Calls f(offset in x, offset in y, divisor) for every element of every window.
template <class F>
void each_element(const Image& x, const Image& y, const Pool& s, F f) {
  const Window& k = s.window;
  y.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
    const Span1 rows = inside(k, 0, h, x.h), columns = inside(k, 1, w, x.w);
    const int64_t by = s.divisor_override != 0 ? s.divisor_override
                       : s.count_include_pad
                           ? with_padding(k, 0, h, x.h) * with_padding(k, 1, w, x.w)
                           : (rows.last - rows.first) * (columns.last - columns.first);
    for (int64_t i = rows.first; i < rows.last; ++i)
      for (int64_t j = columns.first; j < columns.last; ++j)
        f(x.at(n, c, i, j), y.at(n, c, h, w), static_cast<double>(by));
  });
}

void forward(const KernelArgs& args, const Pool& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    std::vector<double> y(static_cast<size_t>(args.out[0].desc.shape.elements()));
    each_element(Image(args.in[0]), Image(args.out[0]), attrs,
                 [&](size_t i, size_t k, double by) { y[k] += static_cast<double>(x[i]) / by; });
    store(y, args.out[0].as<T>());
  });
}

void backward(const KernelArgs& args, const Pool& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    std::vector<double> dx(static_cast<size_t>(args.out[0].desc.shape.elements()));
    each_element(Image(args.out[0]), Image(args.in[0]), attrs,
                 [&](size_t i, size_t k, double by) { dx[i] += static_cast<double>(dy[k]) / by; });
    store(dx, args.out[0].as<T>());
  });
}

}  // namespace

Operators avg_pool() {
  return {{.name = "avg_pool",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .torch_order = TorchOrder::image_or_sequence},
          {.name = "avg_pool_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .layouts = Layouts::images,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
