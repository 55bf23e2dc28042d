// adaptive_avg_pool: y[N, C, H', W'] = the mean of x[N, C, H, W] over rows floor(i H / H') to
// ceil((i + 1) H / H') (exclusive) for output row i, and columns and depths likewise.
//   adaptive_avg_pool_gradient(dy) -> dx[N, C, Resize::extents]
#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

constexpr std::string_view kNothing = "an empty image has no mean";

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Resize& attrs) {
  return infer_resized("adaptive_avg_pool", kNothing, in, attrs);
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Resize& attrs) {
  return infer_resized("adaptive_avg_pool_gradient", kNothing, in, attrs);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("adaptive_avg_pool_gradient", {dy[0]}, Resize{extents_of(g.shape(n.in[0]))})};
}

// Calls f(offset in x, offset in y, number of averaged elements).
template <class F>
void each_element(const Image& x, const Image& y, F f) {
  y.each([&](int64_t n, int64_t c, const Extents& p) {
    const Box averaged = piece(p, x.extents, y.extents);
    const auto count = static_cast<double>(elements_of(averaged));
    each_position(averaged, {1, 1, 1},
                  [&](const Extents& from) { f(x.at(n, c, from), y.at(n, c, p), count); });
  });
}

void forward(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    std::vector<double> y(static_cast<size_t>(args.out[0].desc.shape.elements()));
    each_element(Image(args.in[0]), Image(args.out[0]), [&](size_t i, size_t k, double count) {
      y[k] += static_cast<double>(x[i]) / count;
    });
    store(y, args.out[0].as<T>());
  });
}

void backward(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    std::vector<double> dx(static_cast<size_t>(args.out[0].desc.shape.elements()));
    each_element(Image(args.out[0]), Image(args.in[0]), [&](size_t i, size_t k, double count) {
      dx[i] += static_cast<double>(dy[k]) / count;
    });
    store(dx, args.out[0].as<T>());
  });
}

}  // namespace

Operators adaptive_avg_pool() {
  return {{.name = "adaptive_avg_pool",
           .precision = Precision::pool,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .torch_order = TorchOrder::image_or_sequence},
          {.name = "adaptive_avg_pool_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .layouts = Layouts::images,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
