// max_pool: y[N, C, ...] = the largest element of each window of x[N, C, ...], without padding; nan
// counts as the largest. The second result is its index in its channel, i32, the first index if
// several elements are equal.
//   max_pool_gradient(dy, indices) -> dx[N, C, Pool::extents]
// max_pool_bytes: the same with u8 indices in the window.
//   max_pool_bytes_gradient(dy, indices) -> dx
#include <string>
#include <type_traits>

#include "graph/operators/images/largest.h"

namespace dpt::operators {
namespace {

constexpr DType place_type(int32_t) { return DType::i32; }
constexpr DType place_type(uint8_t) { return DType::u8; }

// P: type of the indices, int32_t within a channel or uint8_t within a window.
template <class P>
std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Pool& s) {
  need_image("max_pool", in[0]);
  const Shape& x = in[0].shape;
  need_indexed("max_pool", x);
  const Shape y = image_shape(x, x[1], window_counts("max_pool", x, s.window, s.ceil_mode));
  return {{in[0].dtype, y}, {place_type(P{}), y}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Pool& attrs) {
  require(in[0].shape == in[1].shape, "max_pool_gradient: dy has an index for each element");
  const Shape& dy = in[0].shape;
  return {{in[0].dtype, image_shape(dy, dy[1], attrs.extents)}};
}

template <class P>
constexpr std::string_view name_of_gradient() {
  return place_type(P{}) == DType::u8 ? "max_pool_bytes_gradient" : "max_pool_gradient";
}

template <class P>
std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  Pool s = settings<Pool>(n.attrs);
  s.extents = extents_of(g.shape(n.in[0]));
  return {g.apply(name_of_gradient<P>(), {dy[0], n.out[1]}, s)};
}

// The index of x's element `at` in the window of output `of`, or in its channel.
template <class P>
P index_of(const Window& k, const Image& x, const Extents& of, const Extents& at) {
  if constexpr (std::is_same_v<P, int32_t>) return static_cast<P>(x.index_of(at));
  int64_t index = 0;
  for (size_t i = 0; i < 3; ++i)
    index = index * k.kernel[i] + (at[i] + k.before[i] - of[i] * k.stride[i]) / k.dilation[i];
  return static_cast<P>(index);
}

// The inverse of index_of().
template <class P>
Extents element_at(const Window& k, const Image& x, const Extents& of, P index) {
  if constexpr (std::is_same_v<P, int32_t>) return x.position_of(index);
  int64_t left = index;
  Extents at{};
  for (size_t i = 3; i-- > 0; left /= k.kernel[i])
    at[i] = of[i] * k.stride[i] - k.before[i] + left % k.kernel[i] * k.dilation[i];
  return at;
}

template <class P>
void forward(const KernelArgs& args, const Pool& attrs) {
  const Window& k = attrs.window;
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    const auto index = args.out[1].as<P>();
    const Image from(args.in[0]), to(args.out[0]);
    to.each([&](int64_t n, int64_t c, const Extents& p) {
      const auto [best, at] = largest<T>(x, from, n, c, inside(k, p, from.extents), k.dilation);
      y[to.at(n, c, p)] = best;
      index[to.at(n, c, p)] = index_of<P>(k, from, p, at);
    });
  });
}

template <class P>
void backward(const KernelArgs& args, const Pool& attrs) {
  const Window& k = attrs.window;
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    const auto index = args.in[1].as<const P>();
    const Image from(args.in[0]), to(args.out[0]);
    std::vector<double> sums(static_cast<size_t>(args.out[0].desc.shape.elements()));
    from.each([&](int64_t n, int64_t c, const Extents& p) {
      const size_t at = from.at(n, c, p);
      const Extents largest = element_at(k, to, p, index[at]);
      bool inside = true;  // empty windows, and samples, may hold indices of padding
      for (size_t i = 0; i < 3; ++i)
        inside = inside && largest[i] >= 0 && largest[i] < to.extents[i];
      if (inside) sums[to.at(n, c, largest)] += static_cast<double>(dy[at]);
    });
    store(sums, args.out[0].as<T>());
  });
}

template <class P>
Operators types_of(std::string_view name) {
  return {{.name = name,
           .precision = Precision::pool,
           .infer = typed<infer<P>>,
           .gradient = gradient<P>,
           .reference = typed<forward<P>>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .torch_order = TorchOrder::image_or_sequence,
           .traits = Trait::selects},
          {.name = name_of_gradient<P>(),
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward<P>>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .traits = Trait::backward}};
}

}  // namespace

Operators max_pool() {
  Operators out = types_of<int32_t>("max_pool");
  add(out, types_of<uint8_t>("max_pool_bytes"));
  return out;
}

}  // namespace dpt::operators
