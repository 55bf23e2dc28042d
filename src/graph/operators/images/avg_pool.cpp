// avg_pool: y[N, C, ...] = the sum over each window of x[N, C, ...], divided by divisor_override if
// that is not 0, else by the number of elements in the window. Padding counts only with
// count_include_pad.
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
  s.extents = extents_of(g.shape(n.in[0]));
  return {g.apply("avg_pool_gradient", {dy[0]}, s)};
}

// Calls f(offset in x, offset in y, divisor) for every element of every window.
template <class F>
void each_element(const Image& x, const Image& y, const Pool& s, F f) {
  y.each([&](int64_t n, int64_t c, const Extents& p) {
    const auto by = static_cast<double>(divisor_of(s, p, x.extents));
    each_position(inside(s.window, p, x.extents), s.window.dilation,
                  [&](const Extents& from) { f(x.at(n, c, from), y.at(n, c, p), by); });
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
           .precision = Precision::pool,
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
