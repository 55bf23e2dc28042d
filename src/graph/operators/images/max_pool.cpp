// max_pool: y[N, C, H', W'] = the largest element of each window of x[N, C, H, W], without padding;
// nan counts as the largest. The second result is its index, i32: h * W + w in its channel, the
// first index if several elements are equal.
//   max_pool_gradient(dy, indices) -> dx[N, C, Pool::extents]
// max_pool_bytes: the same with u8 indices in the window, row * kernel[1] + column.
//   max_pool_bytes_gradient(dy, indices) -> dx
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

constexpr DType place_type(int32_t) { return DType::i32; }
constexpr DType place_type(uint8_t) { return DType::u8; }

// P: type of the indices, int32_t within a channel or uint8_t within a window.
template <class P>
std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Pool& s) {
  need_image("max_pool", in[0]);
  const Shape& x = in[0].shape;
  if ((Checked(Image(x).h) * Image(x).w).value() > std::numeric_limits<int32_t>::max())
    fail(Fault::spec, "max_pool: the images of {} have more than 2^31 - 1 pixels", x.str());
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
  s.extents = Image(g.shape(n.in[0])).extents();
  return {g.apply(name_of_gradient<P>(), {dy[0], n.out[1]}, s)};
}

// The index of x's element (i, j) in the window of output (h, w).
template <class P>
P index_of(const Window& k, const Image& x, int64_t h, int64_t w, int64_t i, int64_t j) {
  if constexpr (std::is_same_v<P, int32_t>) return static_cast<P>(i * x.w + j);
  const int64_t row = (i + k.before[0] - h * k.stride[0]) / k.dilation[0];
  const int64_t column = (j + k.before[1] - w * k.stride[1]) / k.dilation[1];
  return static_cast<P>(row * k.kernel[1] + column);
}

// The inverse of place_of(): x's element (i, j).
template <class P>
Pair element_at(const Window& k, const Image& x, int64_t h, int64_t w, P index) {
  if constexpr (std::is_same_v<P, int32_t>) return {index / x.w, index % x.w};
  return {h * k.stride[0] - k.before[0] + index / k.kernel[1] * k.dilation[0],
          w * k.stride[1] - k.before[1] + index % k.kernel[1] * k.dilation[1]};
}

template <class P>
void forward(const KernelArgs& args, const Pool& attrs) {
  const Window& k = attrs.window;
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    const auto index = args.out[1].as<P>();
    const Image from(args.in[0]), to(args.out[0]);
    to.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      const Span1 rows = inside(k, 0, h, from.h), columns = inside(k, 1, w, from.w);
      T best = -std::numeric_limits<T>::infinity();
      P at = index_of<P>(k, from, h, w, rows.first, columns.first);
      for (int64_t i = rows.first; i < rows.last; i += k.dilation[0])
        for (int64_t j = columns.first; j < columns.last; j += k.dilation[1])
          if (const T v = x[from.at(n, c, i, j)]; v > best || std::isnan(v)) {
            best = v;
            at = index_of<P>(k, from, h, w, i, j);
          }
      y[to.at(n, c, h, w)] = best;
      index[to.at(n, c, h, w)] = at;
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
    from.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      const size_t at = from.at(n, c, h, w);
      const auto [i, j] = element_at(k, to, h, w, index[at]);
      if (i >= 0 && i < to.h && j >= 0 && j < to.w)  // samples may hold indices of padding
        sums[to.at(n, c, i, j)] += static_cast<double>(dy[at]);
    });
    store(sums, args.out[0].as<T>());
  });
}

template <class P>
Operators types_of(std::string_view name) {
  return {{.name = name,
           .precision = Precision::follow,
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
