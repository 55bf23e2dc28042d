// permute: exchanges dimensions: dimension i of y is dimension Permute::order[i] of x. The gradient
// is the inverse permutation.
#include <utility>

#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

using Extents = std::array<int64_t, Shape::kMaxRank>;

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Permute& attrs) {
  const auto& order = attrs.order;
  const Shape& x = in[0].shape;
  Shape y = x;
  std::array<bool, Shape::kMaxRank> used{};
  for (int i = 0; i < x.rank(); ++i) {
    const int from = order[static_cast<size_t>(i)];
    if (from < 0 || from >= x.rank() || std::exchange(used[static_cast<size_t>(from)], true) ||
        (i == 0) != (from == 0))
      fail(Fault::spec, "permute: no order of the dimensions of {} behind the batch", x.str());
    y = y.with(i, x[from]);
  }
  return {{in[0].dtype, y}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  const auto& order = settings<Permute>(n.attrs).order;
  Permute inverse;
  for (size_t i = 0; i < static_cast<size_t>(g.shape(n.in[0]).rank()); ++i)
    inverse.order[static_cast<size_t>(order[i])] = static_cast<int>(i);
  return {g.apply("permute", {dy[0]}, inverse)};
}

// y in row-major order; `step` holds the distances in x of neighbors along y's dimensions.
template <class T>
void copy_in_order(const T* x, T* y, const Shape& to, const Extents& step) {
  const int last = to.rank() - 1;
  const int64_t row = to[last], between = step[static_cast<size_t>(last)];
  Extents at{};
  const T* from = x;
  for (int64_t left = to.elements(); left > 0; left -= row) {
    for (int64_t i = 0; i < row; ++i) *y++ = from[i * between];
    for (int d = last; d-- > 0;) {
      const auto k = static_cast<size_t>(d);
      from += step[k];
      if (++at[k] < to[d]) break;
      from -= to[d] * step[k];
      at[k] = 0;
    }
  }
}

void reference(const KernelArgs& args, const Permute& attrs) {
  const TensorView &x = args.in[0], &y = args.out[0];
  const auto steps = strides_of(x.desc.shape, x.desc.layout);
  Extents step{};
  for (size_t i = 0; i < static_cast<size_t>(x.desc.shape.rank()); ++i)
    step[i] = steps[static_cast<size_t>(attrs.order[i])];
  const auto copy = [&]<class T>(T) {
    copy_in_order(reinterpret_cast<const T*>(x.data), reinterpret_cast<T*>(y.data), y.desc.shape,
                  step);
  };
  switch (size_of(x.desc.dtype)) {
    case 2:
      return copy(uint16_t{});
    case 4:
      return copy(uint32_t{});
    case 8:
      return copy(uint64_t{});
    default:
      return copy(uint8_t{});
  }
}

}  // namespace

Operators permute() {
  return {{.name = "permute",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<reference>,
           .flops = no_flops,
           .traits = Trait::selects | Trait::halves}};
}

}  // namespace dpt::operators
