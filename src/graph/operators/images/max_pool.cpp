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
std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  const auto& s = settings<Pool>(attrs);
  need_image("max_pool", in[0]);
  const Shape& x = in[0].shape;
  if ((Checked(Image(x).h) * Image(x).w).value() > std::numeric_limits<int32_t>::max())
    fail(Fault::spec, "max_pool: the images of {} have more than 2^31 - 1 pixels", x.str());
  const Shape y = image_shape(x, x[1], window_counts("max_pool", x, s.window, s.ceil_mode));
  return {{in[0].dtype, y}, {place_type(P{}), y}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any& attrs) {
  require(in[0].shape == in[1].shape, "max_pool_gradient: dy has an index for each element");
  const Shape& dy = in[0].shape;
  return {{in[0].dtype, image_shape(dy, dy[1], settings<Pool>(attrs).extents)}};
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
void forward(const KernelArgs& args, const std::any& attrs) {
  const Window& k = settings<Pool>(attrs).window;
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
void backward(const KernelArgs& args, const std::any& attrs) {
  const Window& k = settings<Pool>(attrs).window;
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

struct Case {
  Shape x, y;
  Pool s;
};

std::vector<Case> cases() {
  return {
      {{2, 3, 4, 6}, {2, 3, 2, 3}, {{.kernel = {2, 2}, .stride = {2, 2}}}},
      {{2, 17, 5, 5},
       {2, 17, 3, 3},
       {{.kernel = {3, 3}, .stride = {2, 2}, .before = {1, 1}, .behind = {1, 1}}}},
      {{1, 2, 7, 8},
       {1, 2, 2, 4},
       {{.kernel = {2, 3},
         .stride = {3, 2},
         .dilation = {3, 1},
         .before = {0, 1},
         .behind = {0, 1}}}},
      {{2, 2, 6, 7},
       {2, 2, 3, 4},
       {.window = {.kernel = {3, 2}, .stride = {2, 2}}, .ceil_mode = true}},
      {{2, 3, 3, 2},
       {2, 3, 1, 1},
       {.window = {.kernel = {4, 4}, .stride = {3, 3}}, .ceil_mode = true}},
      {{2, 3, 9},
       {2, 3, 5},
       {{.kernel = {1, 2}, .stride = {1, 2}, .before = {0, 1}, .behind = {0, 1}}}},
  };
}

// A wide range keeps elements apart, so that a gradient check's differences of 1e-6 do not change
// which one is the largest.
template <class P>
std::vector<Sample> samples() {
  constexpr DType type = place_type(P{});
  const std::string_view name = type == DType::i32 ? "max_pool" : "max_pool_bytes";
  std::vector<Sample> out;
  for (const Case& c : cases())
    out.push_back({{name, {f32(c.x)}, {f32(c.y), {type, c.y}}, c.s}, {{-10, 10}}});
  return out;
}

template <class P>
std::vector<Sample> gradient_samples() {
  constexpr DType type = place_type(P{});
  const bool bytes = type == DType::u8;
  std::vector<Sample> out;
  for (Case c : cases()) {
    c.s.extents = Image(c.x).extents();
    const Pair of = bytes ? c.s.window.kernel : c.s.extents;
    out.push_back({{name_of_gradient<P>(), {f32(c.y), {type, c.y}}, {f32(c.x)}, c.s},
                   {{}, {0, static_cast<double>(of[0] * of[1])}}});
  }
  return out;
}

template <class P>
OperatorType forward_type(std::string_view name) {
  return selecting(on_images({name, Precision::follow, infer<P>, gradient<P>, forward<P>,
                              samples<P>, elements_of_first_input}));
}

template <class P>
OperatorType gradient_type() {
  OperatorType out = on_images({name_of_gradient<P>(), Precision::follow, infer_gradient, nullptr,
                                backward<P>, gradient_samples<P>, elements_of_first_input});
  out.backward = true;
  return out;
}

}  // namespace

OperatorType max_pool() { return forward_type<int32_t>("max_pool"); }
OperatorType max_pool_gradient() { return gradient_type<int32_t>(); }
OperatorType max_pool_bytes() { return forward_type<uint8_t>("max_pool_bytes"); }
OperatorType max_pool_bytes_gradient() { return gradient_type<uint8_t>(); }

}  // namespace dpt::operators
