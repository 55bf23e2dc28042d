// Convolutions, pooling, padding and resizing in ONNX, where windows have the numbers of the
// extents that an image has: one to three.
#include <algorithm>
#include <any>
#include <limits>

#include "export/onnx_graph.h"
#include "graph/attrs.h"
#include "graph/formulas/resample.h"
#include "graph/windows.h"

namespace dpt {
namespace {

template <class T>
const T& settings(const GraphNode& n) {
  return std::any_cast<const T&>(n.attrs);
}

// The extents that an image has.
std::vector<int64_t> of_image(const Extents& extents, const Shape& image) {
  return {extents.end() - (image.rank() - 2), extents.end()};
}

// Calls f(index in Extents, dimension) for them.
template <class F>
void each_extent(const Shape& image, F f) {
  for (int dim = 2; dim < image.rank(); ++dim) f(static_cast<size_t>(dim + 3 - image.rank()), dim);
}

std::vector<int64_t> both(std::vector<int64_t> before, const std::vector<int64_t>& behind) {
  before.insert(before.end(), behind.begin(), behind.end());
  return before;
}

std::vector<OnnxAttribute> window_attributes(const Window& w, const Shape& image) {
  return {{"kernel_shape", of_image(w.kernel, image)},
          {"strides", of_image(w.stride, image)},
          {"dilations", of_image(w.dilation, image)},
          {"pads", both(of_image(w.before, image), of_image(w.behind, image))}};
}

std::vector<std::string> inputs_of(OnnxGraph& to, const GraphNode& n) {
  std::vector<std::string> out;
  for (const ValueId v : n.in) out.push_back(to[v]);
  return out;
}

void convolution(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<Convolution>(n);
  std::vector<OnnxAttribute> attributes = window_attributes(s.window, to.shape(n.in[0]));
  attributes.push_back({"group", s.groups});
  to.set(n.out[0], to.add("Conv", inputs_of(to, n), std::move(attributes)));
}

// onnxruntime refuses an output_padding that is not smaller than the stride. It is padding that is
// cut off less, and zeros where it is larger than that.
void convolution_transpose(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<Convolution>(n);
  const Shape& x = to.shape(n.in[0]);
  Window w = s.window;
  Extents zeros{}, accepted = s.output_padding;
  bool fits = true;
  for (size_t i = 0; i < 3; ++i) fits = fits && accepted[i] < w.stride[i];
  for (size_t i = 0; i < 3 && !fits; ++i) {
    accepted[i] = 0;
    zeros[i] = std::max<int64_t>(0, s.output_padding[i] - w.behind[i]);
    w.behind[i] = std::max<int64_t>(0, w.behind[i] - s.output_padding[i]);
  }
  std::vector<OnnxAttribute> attributes = window_attributes(w, x);
  attributes.push_back({"group", s.groups});
  attributes.push_back({"output_padding", of_image(accepted, x)});
  std::vector<std::string> inputs = inputs_of(to, n);
  if (zeros == Extents{}) return to.set(n.out[0], to.add("ConvTranspose", inputs, attributes));
  std::string bias;
  if (inputs.size() > 2) {
    bias = inputs.back();
    inputs.pop_back();
  }
  std::string y = to.add("ConvTranspose", inputs, attributes);
  const std::vector<int64_t> outside(2), none(static_cast<size_t>(x.rank()));
  y = to.add("Pad", {y, to.integers(both(none, both(outside, of_image(zeros, x))))});
  if (!bias.empty()) {
    const std::vector<int64_t> over_channels = both({1, -1}, of_image({1, 1, 1}, x));
    y = to.add("Add", {y, to.add("Reshape", {bias, to.integers(over_channels)})});
  }
  to.set(n.out[0], y);
}

// The window with as much padding behind as its positions need. ONNX's ceil_mode has one position
// more than PyTorch's in some cases, so padding takes its place.
Window with_reached_padding(Window w, const Shape& x, const Shape& y) {
  const Extents in = extents_of(x), out = extents_of(y);
  for (size_t i = 0; i < 3; ++i) {
    const int64_t reached = (out[i] - 1) * w.stride[i] + covered(w, i) - in[i] - w.before[i];
    w.behind[i] = std::max<int64_t>(reached, 0);
  }
  return w;
}

void max_pool(OnnxGraph& to, const GraphNode& n) {
  const Shape& x = to.shape(n.in[0]);
  Window w = with_reached_padding(settings<Pool>(n).window, x, to.shape(n.out[0]));
  std::string padded = to[n.in[0]];
  // onnxruntime refuses padding that is not smaller than the kernel.
  bool fits = true;
  for (size_t i = 0; i < 3; ++i) fits = fits && w.behind[i] < w.kernel[i];
  if (!fits) {
    const std::vector<int64_t> outside(2);
    const std::vector<int64_t> pads =
        both(both(outside, of_image(w.before, x)), both(outside, of_image(w.behind, x)));
    const std::string lowest = to.number(-std::numeric_limits<double>::infinity());
    padded = to.add("Pad", {padded, to.integers(pads), lowest});
    w.before = w.behind = {};
  }
  to.set(n.out[0], to.add("MaxPool", {padded}, window_attributes(w, x)));
}

void avg_pool(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<Pool>(n);
  const Shape &x = to.shape(n.in[0]), &y = to.shape(n.out[0]);
  const Window w = with_reached_padding(s.window, x, y);
  std::vector<OnnxAttribute> attributes = window_attributes(w, x);
  std::erase_if(attributes, [](const OnnxAttribute& a) { return a.name == "dilations"; });
  attributes.push_back({"count_include_pad", int64_t{1}});
  std::string mean = to.add("AveragePool", {to[n.in[0]]}, std::move(attributes));
  // The operator divides each sum by the window's size; what PyTorch divides by depends on the
  // position.
  const Extents out = extents_of(y);
  const auto size = static_cast<double>(w.kernel[0] * w.kernel[1] * w.kernel[2]);
  std::vector<float> factors;
  bool needed = false;
  each_position(all_of(out), {1, 1, 1}, [&](const Extents& at) {
    const auto divisor = static_cast<double>(divisor_of(s, at, extents_of(x)));
    factors.push_back(static_cast<float>(size / divisor));
    needed = needed || factors.back() != 1;
  });
  if (needed) mean = to.add("Mul", {mean, to.numbers(both({1, 1}, of_image(out, x)), factors)});
  to.set(n.out[0], mean);
}

// A matrix [out, in] whose rows take the mean of the input ranges of adaptive pooling.
std::vector<float> means(int64_t in, int64_t out) {
  std::vector<float> matrix(static_cast<size_t>(out * in));
  for (int64_t i = 0; i < out; ++i) {
    const Span1 range = piece(i, in, out);
    for (int64_t j = range.first; j < range.last; ++j)
      matrix[static_cast<size_t>(i * in + j)] = 1 / static_cast<float>(range.last - range.first);
  }
  return matrix;
}

// The product of an image [N, C, ...] with a matrix [out, in] along extent i. `x`: the shape that
// the operator reads.
std::string product(OnnxGraph& to, const std::string& image, const Shape& x, size_t i,
                    const std::string& matrix) {
  if (i == 1) return to.add("MatMul", {matrix, image});
  if (i == 2)
    return to.add("MatMul",
                  {image, to.add("Transpose", {matrix}, {{"perm", std::vector<int64_t>{1, 0}}})});
  // The planes of a volume as columns.
  const std::string columns = to.add("Reshape", {image, to.integers({0, 0, x[2], x[3] * x[4]})});
  const std::string planes = to.add("MatMul", {matrix, columns});
  return to.add("Reshape", {planes, to.integers({0, 0, -1, x[3], x[4]})});
}

void adaptive_avg_pool(OnnxGraph& to, const GraphNode& n) {
  const Shape& x = to.shape(n.in[0]);
  const Extents in = extents_of(x), out = extents_of(to.shape(n.out[0]));
  if (out == Extents{1, 1, 1}) return to.set(n.out[0], to.add("GlobalAveragePool", {to[n.in[0]]}));
  if (in[0] % out[0] == 0 && in[1] % out[1] == 0 && in[2] % out[2] == 0) {
    const Extents size{in[0] / out[0], in[1] / out[1], in[2] / out[2]};
    return to.set(n.out[0],
                  to.add("AveragePool", {to[n.in[0]]},
                         {{"kernel_shape", of_image(size, x)}, {"strides", of_image(size, x)}}));
  }
  // Ranges of several sizes: as products with matrices.
  std::string y = to[n.in[0]];
  each_extent(x, [&](size_t i, int) {
    if (out[i] != in[i])
      y = product(to, y, x, i, to.numbers({out[i], in[i]}, means(in[i], out[i])));
  });
  to.set(n.out[0], y);
}

// The indices of `in` elements that give `out` ranges of adaptive pooling the length of the longest
// one, by repeating the last element of shorter ones. `length` becomes that length.
std::vector<int64_t> equal_ranges(int64_t in, int64_t out, int64_t& length) {
  length = 0;
  for (int64_t i = 0; i < out; ++i)
    length = std::max(length, piece(i, in, out).last - piece(i, in, out).first);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < out; ++i)
    for (int64_t k = 0; k < length; ++k)
      indices.push_back(std::min(piece(i, in, out).first + k, piece(i, in, out).last - 1));
  return indices;
}

void adaptive_max_pool(OnnxGraph& to, const GraphNode& n) {
  const Shape& x = to.shape(n.in[0]);
  const Extents in = extents_of(x), out = extents_of(to.shape(n.out[0]));
  if (out == Extents{1, 1, 1}) return to.set(n.out[0], to.add("GlobalMaxPool", {to[n.in[0]]}));
  std::string y = to[n.in[0]];
  Extents size{1, 1, 1};
  each_extent(x, [&](size_t i, int dim) {
    const std::vector<int64_t> indices = equal_ranges(in[i], out[i], size[i]);
    if (in[i] % out[i] == 0) return;
    y = to.add("Gather", {y, to.integers(indices)}, {{"axis", int64_t{dim}}});
  });
  to.set(n.out[0], to.add("MaxPool", {y},
                          {{"kernel_shape", of_image(size, x)}, {"strides", of_image(size, x)}}));
}

// A matrix [out, in] that interpolates one extent.
template <int kTaps>
std::vector<float> interpolation(int64_t in, int64_t out, double scale, bool align_corners) {
  const auto ratio = formula::linear_ratio<float>(in, out, scale, align_corners);
  std::vector<float> matrix(static_cast<size_t>(out * in));
  for (int64_t i = 0; i < out; ++i) {
    const auto taps = formula::taps_of<kTaps>(i, in, out, ratio, align_corners);
    for (int k = 0; k < kTaps; ++k)
      matrix[static_cast<size_t>(i * in + taps.at[k])] += static_cast<float>(taps.weight[k]);
  }
  return matrix;
}

// As products with matrices, for the reason below.
template <int kTaps>
void interpolate(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<Resize>(n);
  const Shape& x = to.shape(n.in[0]);
  const Extents in = extents_of(x), out = s.extents;
  std::string y = to[n.in[0]];
  each_extent(x, [&](size_t i, int) {
    const std::vector<float> matrix =
        interpolation<kTaps>(in[i], out[i], s.scale[i], s.align_corners);
    y = product(to, y, x, i, to.numbers({out[i], in[i]}, matrix));
  });
  to.set(n.out[0], y);
}

void pad_inside(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<Pad>(n);
  const Shape& x = to.shape(n.in[0]);
  const auto rank = static_cast<size_t>(x.rank());
  if (s.mode != Pad::Mode::circular) {
    const std::vector<int64_t> pads = both({s.before.begin(), s.before.begin() + rank},
                                           {s.behind.begin(), s.behind.begin() + rank});
    const std::string mode = s.mode == Pad::Mode::reflect ? "reflect" : "edge";
    return to.set(n.out[0], to.add("Pad", {to[n.in[0]], to.integers(pads)}, {{"mode", mode}}));
  }
  // Operator set 17 has no circular padding.
  std::string y = to[n.in[0]];
  for (size_t d = 2; d < rank; ++d) {
    const int64_t extent = x[static_cast<int>(d)];
    std::vector<int64_t> indices;
    for (int64_t i = -s.before[d]; i < extent + s.behind[d]; ++i)
      indices.push_back(formula::pad_source(formula::PadFrom::circular, i, extent));
    y = to.add("Gather", {y, to.integers(indices)}, {{"axis", static_cast<int64_t>(d)}});
  }
  to.set(n.out[0], y);
}

// Takes rows and columns by their indices, which are exact; Resize computes them by formulas that
// round in another way than PyTorch's for some sizes.
void upsample_nearest(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<Resize>(n);
  const Shape& x = to.shape(n.in[0]);
  const Extents in = extents_of(x);
  std::string y = to[n.in[0]];
  each_extent(x, [&](size_t i, int dim) {
    const std::string indices = to.integers(nearest_sources(in[i], s.extents[i], s, i));
    y = to.add("Gather", {y, indices}, {{"axis", int64_t{dim}}});
  });
  to.set(n.out[0], y);
}

constexpr OnnxOperator kOperators[] = {{"convolution", convolution},
                                       {"convolution_transpose", convolution_transpose},
                                       {"max_pool", max_pool},
                                       {"avg_pool", avg_pool},
                                       {"adaptive_avg_pool", adaptive_avg_pool},
                                       {"adaptive_max_pool", adaptive_max_pool},
                                       {"pad_inside", pad_inside},
                                       {"upsample_bilinear", interpolate<2>},
                                       {"upsample_bicubic", interpolate<4>},
                                       {"upsample_nearest", upsample_nearest}};

}  // namespace

std::span<const OnnxOperator> onnx_image_operators() { return kOperators; }

}  // namespace dpt
