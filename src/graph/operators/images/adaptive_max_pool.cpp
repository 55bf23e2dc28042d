// adaptive_max_pool: y[N, C, H', W'] = the largest element of x[N, C, H, W] over rows floor(i H /
// H') to ceil((i + 1) H / H') (exclusive) for output row i, and columns and depths likewise; nan
// counts as the largest. The second result is its index in its channel, i32, the first index if
// several elements are equal.
//   adaptive_max_pool_gradient(dy, indices) -> dx[N, C, Resize::extents]
#include "graph/operators/images/largest.h"

namespace dpt::operators {
namespace {

constexpr std::string_view kEmpty = "an empty image has no maximum";

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Resize& attrs) {
  const TensorDesc y = infer_resized("adaptive_max_pool", kEmpty, in, attrs)[0];
  need_indexed("adaptive_max_pool", in[0].shape);
  return {y, {DType::i32, y.shape}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Resize& attrs) {
  require(in[0].shape == in[1].shape, "adaptive_max_pool_gradient: dy has an index each");
  return infer_resized("adaptive_max_pool_gradient", kEmpty, in, attrs);
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("adaptive_max_pool_gradient", {dy[0], n.out[1]},
                  Resize{extents_of(g.shape(n.in[0]))})};
}

void forward(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    const auto index = args.out[1].as<int32_t>();
    const Image from(args.in[0]), to(args.out[0]);
    to.each([&](int64_t n, int64_t c, const Extents& p) {
      const auto [best, at] =
          largest<T>(x, from, n, c, piece(p, from.extents, to.extents), {1, 1, 1});
      y[to.at(n, c, p)] = best;
      index[to.at(n, c, p)] = static_cast<int32_t>(from.index_of(at));
    });
  });
}

void backward(const KernelArgs& args) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    const auto index = args.in[1].as<const int32_t>();
    const Image from(args.in[0]), to(args.out[0]);
    std::vector<double> sums(static_cast<size_t>(args.out[0].desc.shape.elements()));
    from.each([&](int64_t n, int64_t c, const Extents& p) {
      const size_t at = from.at(n, c, p);
      sums[to.at(n, c, to.position_of(index[at]))] += static_cast<double>(dy[at]);
    });
    store(sums, args.out[0].as<T>());
  });
}

}  // namespace

Operators adaptive_max_pool() {
  return {{.name = "adaptive_max_pool",
           .precision = Precision::pool,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .torch_order = TorchOrder::image_or_sequence,
           .traits = Trait::selects},
          {.name = "adaptive_max_pool_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .traits = Trait::backward}};
}

}  // namespace dpt::operators
