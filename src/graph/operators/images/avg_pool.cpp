// avg_pool: y[N, C, ...] = the sum over each window of x[N, C, ...], divided by divisor_override if
// that is not 0, else by the number of elements in the window. Padding counts only with
// count_include_pad.
//   avg_pool_gradient(dy) -> dx[N, C, Pool::extents]
// adaptive_avg_pool: y[N, C, H', W'] = the mean of x[N, C, H, W] over rows floor(i H / H') to
// ceil((i + 1) H / H') (exclusive) for output row i, and columns and depths likewise.
//   adaptive_avg_pool_gradient(dy) -> dx[N, C, Resize::extents]
#include <functional>

#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

constexpr std::string_view kNothing = "an empty image has no mean";

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Pool& s) {
  need_image("avg_pool", in[0]);
  const Shape& x = in[0].shape;
  return {{in[0].dtype, image_shape(x, x[1], window_counts("avg_pool", x, s.window, s.ceil_mode))}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Pool& attrs) {
  const Shape& dy = in[0].shape;
  return {{in[0].dtype, image_shape(dy, dy[1], attrs.extents)}};
}

std::vector<TensorDesc> infer_adaptive(std::span<const TensorDesc> in, const Resize& attrs) {
  return infer_resized("adaptive_avg_pool", kNothing, in, attrs);
}

std::vector<TensorDesc> infer_adaptive_gradient(std::span<const TensorDesc> in,
                                                const Resize& attrs) {
  return infer_resized("adaptive_avg_pool_gradient", kNothing, in, attrs);
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
template <class F>
void each_element(const Image& x, const Image& y, const Resize&, F f) {
  y.each([&](int64_t n, int64_t c, const Extents& p) {
    const Box averaged = piece(p, x.extents, y.extents);
    const auto count = static_cast<double>(elements_of(averaged));
    each_position(averaged, {1, 1, 1},
                  [&](const Extents& from) { f(x.at(n, c, from), y.at(n, c, p), count); });
  });
}

// S: Pool, or Resize for adaptive pools.
template <class S, bool kGradient>
void reference(const KernelArgs& args, const S& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    sum_elements<T, kGradient>(
        args, [&](const Image& x, const Image& y, auto f) { each_element(x, y, attrs, f); },
        std::divides<>());
  });
}

template <class S, auto kInfer, auto kInferGradient>
Operators types_of(std::string_view name, std::string_view gradient) {
  return {{.name = name,
           .precision = Precision::pool,
           .infer = typed<kInfer>,
           .gradient = gradient_to_extents<S>,
           .reference = typed<reference<S, false>>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .torch_order = TorchOrder::image_or_sequence},
          {.name = gradient,
           .precision = Precision::follow,
           .infer = typed<kInferGradient>,
           .reference = typed<reference<S, true>>,
           .layouts = Layouts::images,
           .traits = Trait::backward}};
}

}  // namespace

Operators avg_pool() {
  Operators out = types_of<Pool, infer, infer_gradient>("avg_pool", "avg_pool_gradient");
  add(out, types_of<Resize, infer_adaptive, infer_adaptive_gradient>("adaptive_avg_pool",
                                                                     "adaptive_avg_pool_gradient"));
  return out;
}

}  // namespace dpt::operators
