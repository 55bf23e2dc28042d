// Convolutions, pooling, padding and resizing in ONNX, where windows have the numbers of the
// extents that an image has: one or two.
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

// The number of an image's extents; [N, C, W] has its width alone.
int dims_of(const Shape& image) { return image.rank() - 2; }

// Height and width, with a height of 1 for [N, C, W].
Pair extents_of(const Shape& image) {
  return dims_of(image) == 2 ? Pair{image[2], image[3]} : Pair{1, image[2]};
}

std::vector<int64_t> of_image(const Pair& pair, const Shape& image) {
  return dims_of(image) == 2 ? std::vector<int64_t>{pair[0], pair[1]}
                             : std::vector<int64_t>{pair[1]};
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
  Pair zeros{}, accepted = s.output_padding;
  const bool fits = accepted[0] < w.stride[0] && accepted[1] < w.stride[1];
  for (size_t i = 0; i < 2 && !fits; ++i) {
    accepted[i] = 0;
    zeros[i] = std::max<int64_t>(0, s.output_padding[i] - w.behind[i]);
    w.behind[i] = std::max<int64_t>(0, w.behind[i] - s.output_padding[i]);
  }
  std::vector<OnnxAttribute> attributes = window_attributes(w, x);
  attributes.push_back({"group", s.groups});
  attributes.push_back({"output_padding", of_image(accepted, x)});
  std::vector<std::string> inputs = inputs_of(to, n);
  if (zeros == Pair{}) return to.set(n.out[0], to.add("ConvTranspose", inputs, attributes));
  std::string bias;
  if (inputs.size() > 2) {
    bias = inputs.back();
    inputs.pop_back();
  }
  std::string y = to.add("ConvTranspose", inputs, attributes);
  const std::vector<int64_t> outside(static_cast<size_t>(x.rank()) - of_image(zeros, x).size());
  const std::vector<int64_t> none(static_cast<size_t>(x.rank()));
  y = to.add("Pad", {y, to.integers(both(none, both(outside, of_image(zeros, x))))});
  if (!bias.empty()) {
    const std::vector<int64_t> over_channels = both({1, -1}, of_image({1, 1}, x));
    y = to.add("Add", {y, to.add("Reshape", {bias, to.integers(over_channels)})});
  }
  to.set(n.out[0], y);
}

// The window with as much padding behind as its positions need. ONNX's ceil_mode has one position
// more than PyTorch's in some cases, so padding takes its place.
Window with_reached_padding(Window w, const Shape& x, const Shape& y) {
  const Pair in = extents_of(x), out = extents_of(y);
  for (size_t i = 0; i < 2; ++i) {
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
  if (w.behind[0] >= w.kernel[0] || w.behind[1] >= w.kernel[1]) {
    const std::vector<int64_t> outside(static_cast<size_t>(x.rank()) -
                                       of_image(w.before, x).size());
    const std::vector<int64_t> pads =
        both(both(outside, of_image(w.before, x)), both(outside, of_image(w.behind, x)));
    const std::string lowest = to.number(-std::numeric_limits<double>::infinity());
    padded = to.add("Pad", {padded, to.integers(pads), lowest});
    w.before = w.behind = {};
  }
  to.set(n.out[0], to.add("MaxPool", {padded}, window_attributes(w, x)));
}

// What PyTorch divides the sum of a window by.
double divisor(const Pool& s, const Pair& in, int64_t row, int64_t column) {
  const Window& k = s.window;
  if (s.divisor_override != 0) return static_cast<double>(s.divisor_override);
  if (s.count_include_pad)
    return static_cast<double>(with_padding(k, 0, row, in[0]) * with_padding(k, 1, column, in[1]));
  const Span1 rows = inside(k, 0, row, in[0]), columns = inside(k, 1, column, in[1]);
  return static_cast<double>((rows.last - rows.first) * (columns.last - columns.first));
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
  const Pair in = extents_of(x), out = extents_of(y);
  const auto size = static_cast<double>(w.kernel[0] * w.kernel[1]);
  std::vector<float> factors;
  bool needed = false;
  for (int64_t i = 0; i < out[0]; ++i)
    for (int64_t j = 0; j < out[1]; ++j) {
      factors.push_back(static_cast<float>(size / divisor(s, in, i, j)));
      needed = needed || factors.back() != 1;
    }
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

void adaptive_avg_pool(OnnxGraph& to, const GraphNode& n) {
  const Shape& x = to.shape(n.in[0]);
  const Pair in = extents_of(x), out = extents_of(to.shape(n.out[0]));
  if (out == Pair{1, 1}) return to.set(n.out[0], to.add("GlobalAveragePool", {to[n.in[0]]}));
  if (in[0] % out[0] == 0 && in[1] % out[1] == 0) {
    const Pair size{in[0] / out[0], in[1] / out[1]};
    return to.set(n.out[0],
                  to.add("AveragePool", {to[n.in[0]]},
                         {{"kernel_shape", of_image(size, x)}, {"strides", of_image(size, x)}}));
  }
  // Ranges of several sizes: as products with matrices, of the height and of the width.
  std::string y = to[n.in[0]];
  if (out[0] != in[0]) y = to.add("MatMul", {to.numbers({out[0], in[0]}, means(in[0], out[0])), y});
  if (out[1] != in[1]) {
    const std::string rows = to.numbers({out[1], in[1]}, means(in[1], out[1]));
    y = to.add("MatMul", {y, to.add("Transpose", {rows}, {{"perm", std::vector<int64_t>{1, 0}}})});
  }
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
  const Pair in = extents_of(x), out = extents_of(to.shape(n.out[0]));
  if (out == Pair{1, 1}) return to.set(n.out[0], to.add("GlobalMaxPool", {to[n.in[0]]}));
  std::string y = to[n.in[0]];
  Pair size{1, 1};
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<int64_t> indices = equal_ranges(in[i], out[i], size[i]);
    if (in[i] % out[i] == 0) continue;
    const int64_t axis = x.rank() - 2 + static_cast<int64_t>(i);
    y = to.add("Gather", {y, to.integers(indices)}, {{"axis", axis}});
  }
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

// As products with matrices, of the height and of the width, for the reason below.
template <int kTaps>
void interpolate(OnnxGraph& to, const GraphNode& n) {
  const auto& s = settings<Resize>(n);
  const Shape& x = to.shape(n.in[0]);
  const Pair in = extents_of(x), out = s.extents;
  const auto matrix = [&](size_t i) {
    return to.numbers({out[i], in[i]},
                      interpolation<kTaps>(in[i], out[i], s.scale[i], s.align_corners));
  };
  std::string y = to[n.in[0]];
  if (dims_of(x) == 2) y = to.add("MatMul", {matrix(0), y});
  const std::string columns =
      to.add("Transpose", {matrix(1)}, {{"perm", std::vector<int64_t>{1, 0}}});
  to.set(n.out[0], to.add("MatMul", {y, columns}));
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
  const Pair in = extents_of(x);
  std::string y = to[n.in[0]];
  for (size_t i = dims_of(x) == 2 ? 0 : 1; i < 2; ++i) {
    const std::string indices = to.integers(nearest_sources(in[i], s.extents[i], s, i));
    const int64_t axis = x.rank() - 2 + static_cast<int64_t>(i);
    y = to.add("Gather", {y, indices}, {{"axis", axis}});
  }
  to.set(n.out[0], y);
}

// A volume's planes, those that windows of several planes read one after another, as images.
void unfold_depth(OnnxGraph& to, const GraphNode& n) {
  const Window& w = settings<DepthWindow>(n).window;
  const Shape &x = to.shape(n.in[0]), &y = to.shape(n.out[0]);
  const int64_t positions = y[0] / x[0], kernel = w.kernel[0];
  std::string planes = to[n.in[0]];
  if (w.before[0] > 0 || w.behind[0] > 0)
    planes = to.add("Pad", {planes, to.integers({0, 0, w.before[0], 0, 0, 0, 0,
                                                 std::max<int64_t>(0, w.behind[0]), 0, 0})});
  std::vector<int64_t> taken;
  for (int64_t at = 0; at < positions; ++at)
    for (int64_t k = 0; k < kernel; ++k) taken.push_back(at * w.stride[0] + k * w.dilation[0]);
  planes = to.add("Gather", {planes, to.integers(taken)}, {{"axis", int64_t{2}}});
  planes = to.add("Reshape", {planes, to.integers({-1, x[1], positions, kernel, x[3], x[4]})});
  planes = to.add("Transpose", {planes}, {{"perm", std::vector<int64_t>{0, 2, 1, 3, 4, 5}}});
  to.set(n.out[0], to.add("Reshape", {planes, to.integers({-1, y[1], y[2], y[3]})}));
}

// The sums are a product with a matrix [positions * kernel, depth] of zeros and ones.
void fold_depth(OnnxGraph& to, const GraphNode& n) {
  const Window& w = settings<DepthWindow>(n).window;
  const Shape &y = to.shape(n.in[0]), &x = to.shape(n.out[0]);
  const int64_t positions = y[0] / x[0], kernel = w.kernel[0], depth = x[2];
  std::string volume =
      to.add("Reshape", {to[n.in[0]], to.integers({-1, positions, x[1], kernel, x[3], x[4]})});
  if (kernel == 1 && positions == depth && w.stride[0] == 1 && w.before[0] == 0) {
    volume = to.add("Transpose", {volume}, {{"perm", std::vector<int64_t>{0, 2, 1, 3, 4, 5}}});
  } else {
    std::vector<float> taps(static_cast<size_t>(positions * kernel * depth));
    for (int64_t i = 0; i < positions * kernel; ++i) {
      const int64_t plane = i / kernel * w.stride[0] - w.before[0] + i % kernel * w.dilation[0];
      if (plane >= 0 && plane < depth) taps[static_cast<size_t>(i * depth + plane)] = 1;
    }
    volume = to.add("Transpose", {volume}, {{"perm", std::vector<int64_t>{0, 2, 4, 5, 1, 3}}});
    volume = to.add("Reshape", {volume, to.integers({-1, x[1], x[3], x[4], positions * kernel})});
    volume = to.add("MatMul", {volume, to.numbers({positions * kernel, depth}, taps)});
    volume = to.add("Transpose", {volume}, {{"perm", std::vector<int64_t>{0, 1, 4, 2, 3}}});
  }
  volume = to.add("Reshape", {volume, to.integers({-1, x[1], depth, x[3], x[4]})});
  if (n.in.size() > 1)
    volume =
        to.add("Add", {volume, to.add("Reshape", {to[n.in[1]], to.integers({x[1], 1, 1, 1})})});
  to.set(n.out[0], volume);
}

constexpr OnnxOperator kOperators[] = {{"unfold_depth", unfold_depth},
                                       {"fold_depth", fold_depth},
                                       {"convolution", convolution},
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
