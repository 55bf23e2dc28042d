// Helpers for operators on values [N, C, W] and [N, C, H, W]. Both are handled as [N, C, H, W].
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "graph/operators/support.h"
#include "graph/windows.h"

namespace dpt::operators {

// Extents and strides of a tensor as [n, c, h, w]. [N, C, W] has h = 1; for other ranks, w is the
// product of all extents after the channels. For a weight [O, I, kh, kw], n is O and c is I.
struct Image {
  int64_t n = 1, c = 1, h = 1, w = 1;
  explicit Image(const TensorDesc& d) {
    const Shape& s = d.shape;
    n = s[0];
    if (s.rank() > 1) c = s[1];
    if (s.rank() == 4) h = s[2];
    w = s.rank() == 4 ? s[3] : s.rank() > 2 ? s.tail(2).elements() : 1;
    const auto steps = strides_of(Shape{n, c, h, w}, d.layout);
    std::copy_n(steps.begin(), 4, step_.begin());
  }
  explicit Image(const Shape& s) : Image(TensorDesc{DType::f32, s}) {}
  explicit Image(const TensorView& v) : Image(v.desc) {}
  Pair extents() const { return {h, w}; }
  size_t at(int64_t in, int64_t ic, int64_t ih, int64_t iw) const {
    return static_cast<size_t>(in * step_[0] + ic * step_[1] + ih * step_[2] + iw * step_[3]);
  }
  // From a channel to the next one.
  size_t channel_step() const { return static_cast<size_t>(step_[1]); }
  // Calls f(n, c, h, w) for all elements.
  template <class F>
  void each(F f) const {
    for (int64_t in = 0; in < n; ++in)
      for (int64_t ic = 0; ic < c; ++ic)
        for (int64_t ih = 0; ih < h; ++ih)
          for (int64_t iw = 0; iw < w; ++iw) f(in, ic, ih, iw);
  }

 private:
  std::array<int64_t, 4> step_{};
};

// A shape of the rank of `like`, with other channels, height and width. Rank 3 has no height.
inline Shape image_shape(const Shape& like, int64_t channels, Pair extents) {
  return like.rank() == 4 ? Shape{like[0], channels, extents[0], extents[1]}
                          : Shape{like[0], channels, extents[1]};
}

inline void need_image(std::string_view op, const TensorDesc& x) {
  need_real(op, x);
  if (x.shape.rank() != 3 && x.shape.rank() != 4)
    fail(Fault::spec, "{}: takes [N, C, W] or [N, C, H, W], not {}", op, x.shape.str());
}

// Shape rule of operators that change the extents of images to Resize::extents. `why` explains in
// the error why the extents must not be 0.
inline std::vector<TensorDesc> infer_resized(std::string_view op, std::string_view why,
                                             std::span<const TensorDesc> in, const Resize& attrs) {
  need_image(op, in[0]);
  const Shape& x = in[0].shape;
  const Pair wanted = attrs.extents;
  for (const Pair& extents : {Image(x).extents(), wanted})
    if (extents[0] < 1 || extents[1] < 1)
      fail(Fault::spec, "{}: {}, {} to {} x {}", op, why, x.str(), wanted[0], wanted[1]);
  return {{in[0].dtype, image_shape(x, x[1], wanted)}};
}

// How many positions a window has along each extent. With ceil_mode the last window may reach
// beyond the padding by less than a step, but must begin within the image or the padding before it
// (pooling_output_shape in PyTorch).
inline Pair window_counts(std::string_view op, const Shape& x, const Window& w,
                          bool ceil_mode = false) {
  const Pair in = Image(x).extents();
  Pair out{};
  for (size_t i = 0; i < 2; ++i) {
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

// In double, the bias of each element of the first result: the number of its channel in input
// `bias`, or 0 without that input.
template <class T>
std::vector<double> filled_with_bias(const KernelArgs& args, size_t bias) {
  std::vector<double> sums(static_cast<size_t>(args.out[0].desc.shape.elements()));
  if (args.in.size() <= bias) return sums;
  const auto b = args.in[bias].as<const T>();
  const Image y(args.out[0]);
  y.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
    sums[y.at(n, c, h, w)] = static_cast<double>(b[static_cast<size_t>(c)]);
  });
  return sums;
}

}  // namespace dpt::operators
