// max_pool: y[N, C, ...] = the largest element of each window of x[N, C, ...], without padding; nan
// counts as the largest. The second result is its index in its channel, i32, the first index if
// several elements are equal.
//   max_pool_gradient(dy, indices) -> dx[N, C, Pool::extents]
// max_pool_bytes: the same with u8 indices in the window.
//   max_pool_bytes_gradient(dy, indices) -> dx
// adaptive_max_pool: max_pool over rows floor(i H / H') to ceil((i + 1) H / H') (exclusive) of x[N,
// C, H, W] for row i of y[N, C, H', W'], and columns and depths likewise.
//   adaptive_max_pool_gradient(dy, indices) -> dx[N, C, Resize::extents]
#include <cmath>
#include <limits>
#include <type_traits>

#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

constexpr std::string_view kEmpty = "an empty image has no maximum";

// Throws Error{spec} if indices of elements of a channel do not fit into i32.
void need_indexed(std::string_view op, const Shape& x) {
  if (x.tail(2).elements() > std::numeric_limits<int32_t>::max())
    fail(Fault::spec, "{}: the images of {} have more than 2^31 - 1 pixels", op, x.str());
}

template <class T>
struct Largest {
  T value;
  Extents position;
};

// The first of the largest elements; nan counts as the largest. Of an empty box, -inf and its
// first position.
template <class T>
Largest<T> largest(std::span<const T> x, const Image& image, int64_t n, int64_t c, const Box& box,
                   const Extents& step) {
  Largest<T> out{-std::numeric_limits<T>::infinity(), {box[0].first, box[1].first, box[2].first}};
  each_position(box, step, [&](const Extents& p) {
    if (const T v = x[image.at(n, c, p)]; v > out.value || std::isnan(v)) out = {v, p};
  });
  return out;
}

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

std::vector<TensorDesc> infer_adaptive(std::span<const TensorDesc> in, const Resize& attrs) {
  const TensorDesc y = infer_resized("adaptive_max_pool", kEmpty, in, attrs)[0];
  need_indexed("adaptive_max_pool", in[0].shape);
  return {y, {DType::i32, y.shape}};
}

std::vector<TensorDesc> infer_adaptive_gradient(std::span<const TensorDesc> in,
                                                const Resize& attrs) {
  require(in[0].shape == in[1].shape, "adaptive_max_pool_gradient: dy has an index each");
  return infer_resized("adaptive_max_pool_gradient", kEmpty, in, attrs);
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
void forward(const KernelArgs& args, const Window& k, bool adaptive) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    const auto index = args.out[1].as<P>();
    const Image from(args.in[0]), to(args.out[0]);
    to.each([&](int64_t n, int64_t c, const Extents& p) {
      const Box box = adaptive ? piece(p, from.extents, to.extents) : inside(k, p, from.extents);
      const auto [best, at] = largest<T>(x, from, n, c, box, k.dilation);
      y[to.at(n, c, p)] = best;
      index[to.at(n, c, p)] = index_of<P>(k, from, p, at);
    });
  });
}

template <class P>
void backward(const KernelArgs& args, const Window& k) {
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
void pool_forward(const KernelArgs& args, const Pool& s) {
  forward<P>(args, s.window, false);
}
template <class P>
void pool_backward(const KernelArgs& args, const Pool& s) {
  backward<P>(args, s.window);
}
void adaptive_forward(const KernelArgs& args) { forward<int32_t>(args, {}, true); }
void adaptive_backward(const KernelArgs& args) { backward<int32_t>(args, {}); }

template <class S, auto kInfer, auto kInferGradient, auto kForward, auto kBackward>
Operators types_of(std::string_view name, std::string_view gradient) {
  return {{.name = name,
           .precision = Precision::pool,
           .infer = typed<kInfer>,
           .gradient = gradient_to_extents<S>,
           .reference = typed<kForward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .torch_order = TorchOrder::image_or_sequence,
           .traits = Trait::selects},
          {.name = gradient,
           .precision = Precision::follow,
           .infer = typed<kInferGradient>,
           .reference = typed<kBackward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .traits = Trait::backward}};
}

}  // namespace

Operators max_pool() {
  Operators out =
      types_of<Pool, infer<int32_t>, infer_gradient, pool_forward<int32_t>, pool_backward<int32_t>>(
          "max_pool", "max_pool_gradient");
  add(out,
      types_of<Pool, infer<uint8_t>, infer_gradient, pool_forward<uint8_t>, pool_backward<uint8_t>>(
          "max_pool_bytes", "max_pool_bytes_gradient"));
  add(out, types_of<Resize, infer_adaptive, infer_adaptive_gradient, adaptive_forward,
                    adaptive_backward>("adaptive_max_pool", "adaptive_max_pool_gradient"));
  return out;
}

}  // namespace dpt::operators
