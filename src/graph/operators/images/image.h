// Helpers for operators on values [N, C, W], [N, C, H, W] and [N, C, D, H, W]. All are handled as
// [N, C, D, H, W].
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "graph/operators/support.h"
#include "graph/windows.h"

namespace dpt::operators {

// Extents and strides of a tensor as [n, c, depth, height, width] (extents_of() in windows.h). For
// a weight [O, I, ...], n is O and c is I.
struct Image {
  int64_t n = 1, c = 1;
  Extents extents;
  explicit Image(const TensorDesc& d) : extents(extents_of(d.shape)) {
    n = d.shape[0];
    if (d.shape.rank() > 1) c = d.shape[1];
    const auto steps = strides_of(Shape{n, c, extents[0], extents[1], extents[2]}, d.layout);
    std::copy_n(steps.begin(), 5, step_.begin());
  }
  explicit Image(const Shape& s) : Image(TensorDesc{DType::f32, s}) {}
  explicit Image(const TensorView& v) : Image(v.desc) {}
  size_t at(int64_t in, int64_t ic, const Extents& p) const {
    return static_cast<size_t>(in * step_[0] + ic * step_[1] + p[0] * step_[2] + p[1] * step_[3] +
                               p[2] * step_[4]);
  }
  // From a channel to the next one, and from a column.
  size_t channel_step() const { return static_cast<size_t>(step_[1]); }
  size_t column_step() const { return static_cast<size_t>(step_[4]); }
  // The index of a position in its channel, and its inverse.
  int64_t index_of(const Extents& p) const {
    return (p[0] * extents[1] + p[1]) * extents[2] + p[2];
  }
  Extents position_of(int64_t index) const {
    const int64_t row = index / extents[2];
    return {row / extents[1], row % extents[1], index % extents[2]};
  }
  // Calls f(n, c, position) for all elements, or for the first of each row.
  template <class F>
  void each(F f) const {
    each_in(extents, f);
  }
  template <class F>
  void each_row(F f) const {
    each_in({extents[0], extents[1], std::min<int64_t>(1, extents[2])}, f);
  }

 private:
  template <class F>
  void each_in(const Extents& of, F f) const {
    for (int64_t in = 0; in < n; ++in)
      for (int64_t ic = 0; ic < c; ++ic)
        each_position(all_of(of), {1, 1, 1}, [&](const Extents& p) { f(in, ic, p); });
  }

  std::array<int64_t, 5> step_{};
};

// A shape of the rank of `like`, with other channels and extents: as many as the rank has.
inline Shape image_shape(const Shape& like, int64_t channels, const Extents& extents) {
  std::vector<int64_t> out(extents.end() - (like.rank() - 2), extents.end());
  out.insert(out.begin(), {like[0], channels});
  return Shape(out);
}

inline void need_image(std::string_view op, const TensorDesc& x) {
  need_real(op, x);
  if (x.shape.rank() < 3 || x.shape.rank() > 5)
    fail(Fault::spec, "{}: takes [N, C, W], [N, C, H, W] or [N, C, D, H, W], not {}", op,
         x.shape.str());
}

// Shape rule of operators that change the extents of images to Resize::extents. `why` explains in
// the error why the extents must not be 0.
inline std::vector<TensorDesc> infer_resized(std::string_view op, std::string_view why,
                                             std::span<const TensorDesc> in, const Resize& attrs) {
  need_image(op, in[0]);
  const Shape& x = in[0].shape;
  const Shape y = image_shape(x, x[1], attrs.extents);
  for (const Shape& s : {x, y})
    if (std::ranges::min(extents_of(s)) < 1)
      fail(Fault::spec, "{}: {}, {} to {}", op, why, x.str(), y.str());
  return {{in[0].dtype, y}};
}

// How many positions a window has along each extent. With ceil_mode the last window may reach
// beyond the padding by less than a step, but must begin within the image or the padding before it
// (pooling_output_shape in PyTorch).
inline Extents window_counts(std::string_view op, const Shape& x, const Window& w,
                             bool ceil_mode = false) {
  const Extents in = extents_of(x);
  Extents out{};
  for (size_t i = 0; i < 3; ++i) {
    if (in[i] < 1) fail(Fault::spec, "{}: the images of {} are empty", op, x.str());
    const int64_t left = padded(w, i, in[i]) - covered(w, i);
    if (left + (ceil_mode ? w.stride[i] - 1 : 0) < 0)
      fail(Fault::spec, "{}: a window that covers {} does not fit into {}, padded to {}", op,
           covered(w, i), x.str(), padded(w, i, in[i]));
    // The last window that fits; with ceil_mode one more, if elements are left over.
    const bool further = ceil_mode && left > 0 && left % w.stride[i] != 0;
    out[i] = left < 0 ? 1 : left / w.stride[i] + (further ? 2 : 1);
    if (ceil_mode && (Checked(out[i] - 1) * w.stride[i] - in[i]).value() >= w.before[i]) --out[i];
  }
  return out;
}

// Rounds sums in double to the result's type.
template <class T>
void store(const std::vector<double>& sums, std::span<T> to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] = static_cast<T>(sums[i]);
}

// Each element of y is the sum of terms, term(element of x, w), for all f(offset in x, offset in y,
// w) that each(x, y, f) calls. kGradient: the inverse, dx from dy.
template <class T, bool kGradient, class Each, class Term>
void sum_elements(const KernelArgs& args, Each each, Term term) {
  const auto from = args.in[0].as<const T>();
  const Image in(args.in[0]), out(args.out[0]);
  std::vector<double> sums(static_cast<size_t>(args.out[0].desc.shape.elements()));
  each(kGradient ? out : in, kGradient ? in : out, [&](size_t x, size_t y, double w) {
    sums[kGradient ? x : y] += term(static_cast<double>(from[kGradient ? y : x]), w);
  });
  store(sums, args.out[0].as<T>());
}

// The gradient of an operator with S::extents: NAME_gradient(dy, [second result]), with x's
// extents.
template <class S>
std::vector<ValueId> gradient_to_extents(GraphBuilder& g, const GraphNode& n,
                                         std::span<const ValueId> dy) {
  S s = settings<S>(n.attrs);
  s.extents = extents_of(g.shape(n.in[0]));
  std::vector<ValueId> in = {dy[0]};
  if (n.out.size() > 1) in.push_back(n.out[1]);
  return {g.apply(fmt::format("{}_gradient", n.op->name), in, s)};
}

// In double, the bias of each element of the first result: the number of its channel in input
// `bias`, or 0 without that input.
template <class T>
std::vector<double> filled_with_bias(const KernelArgs& args, size_t bias) {
  std::vector<double> sums(static_cast<size_t>(args.out[0].desc.shape.elements()));
  if (args.in.size() <= bias) return sums;
  const auto b = args.in[bias].as<const T>();
  const Image y(args.out[0]);
  y.each([&](int64_t n, int64_t c, const Extents& p) {
    sums[y.at(n, c, p)] = static_cast<double>(b[static_cast<size_t>(c)]);
  });
  return sums;
}

}  // namespace dpt::operators
