// ONNX operators on images, as layers of dptrain.
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "graph/attrs.h"
#include "onnx/nodes.h"

namespace dpt::onnx {
namespace {

using Extents = std::vector<int64_t>;
using Results = std::vector<Comparison>;

Extents list(const Case& c, std::string_view attribute, size_t count, int64_t otherwise) {
  const Node* n = c.attributes.find(attribute);
  if (!n) return Extents(count, otherwise);
  Extents out;
  for (const Node& item : n->items) out.push_back(static_cast<int64_t>(golden::number(item)));
  return out;
}

bool yes(const Case& c, std::string_view attribute) { return c.number(attribute, 0) != 0; }

// Where a window goes, in ONNX's words.
struct Strides {
  Extents kernel, strides, dilations, before, behind;

  Strides(const Case& c, const Extents& x, const Extents& window) : kernel(window) {
    const size_t dims = x.size() - 2;
    if (dims > 3) throw Inexpressible{"a volume has three extents"};
    strides = list(c, "strides", dims, 1);
    dilations = list(c, "dilations", dims, 1);
    const Extents pads = list(c, "pads", 2 * dims, 0);
    before.assign(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(dims));
    behind.assign(pads.begin() + static_cast<ptrdiff_t>(dims), pads.end());
    const std::string same = c.word("auto_pad", "NOTSET");
    if (!same.starts_with("SAME")) return;
    for (size_t i = 0; i < dims; ++i) {
      const int64_t places = (x[i + 2] + strides[i] - 1) / strides[i];
      const int64_t all = (places - 1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1 - x[i + 2];
      before[i] = same == "SAME_UPPER" ? all / 2 : all - all / 2;
      behind[i] = all - before[i];
    }
  }

  // As a number for each dimension, for layers whose padding is the same on both sides.
  std::string settings() const {
    if (before != behind) throw Inexpressible{"padding that is not the same on both sides"};
    return fmt::format("kernel_size: [{}], stride: [{}], padding: [{}]", fmt::join(kernel, ", "),
                       fmt::join(strides, ", "), fmt::join(before, ", "));
  }
  std::string dilation() const {
    return fmt::format(", dilation: [{}]", fmt::join(dilations, ", "));
  }
};

// "conv2d" of "conv", for an input with two dimensions after the channels.
std::string of_dimensions(std::string_view name, const Extents& x) {
  return fmt::format("{}{}d", name, x.size() - 2);
}

Results one_layer(const Case& c, std::string_view name, const std::string& settings,
                  const std::vector<std::vector<double>>& parameters, Tolerance tolerance) {
  Net net;
  net.expect(net.layer(name, "{" + settings + "}", {net.real(c.inputs[0])}, parameters),
             c.outputs[0], tolerance);
  return net.run();
}

// How many one case's expected number has.
constexpr Tolerance kFourDigits{5e-4, 0};

// An output is a sum of as many terms as a window has, which may cancel.
Tolerance of_sums(const Case& c) {
  double largest = 1;
  for (double y : c.outputs[0].data) largest = std::max(largest, std::abs(y));
  return {2e-6, 1e-7 * largest};
}

Results conv(const Case& c) {
  const Extents &x = c.inputs[0].extents, &w = c.inputs[1].extents;
  const Strides s(c, x, Extents(w.begin() + 2, w.end()));
  const bool bias = c.has_input(2);
  std::vector<std::vector<double>> parameters = {c.inputs[1].data};
  if (bias) parameters.push_back(c.inputs[2].data);
  return one_layer(c, of_dimensions("conv", x),
                   fmt::format("out_channels: {}, {}{}, groups: {}, bias: {}", w[0], s.settings(),
                               s.dilation(), c.number("group", 1), bias),
                   parameters, of_sums(c));
}

Results conv_transpose(const Case& c) {
  const Extents &x = c.inputs[0].extents, &w = c.inputs[1].extents, &y = c.outputs[0].extents;
  const Strides s(c, x, Extents(w.begin() + 2, w.end()));
  if (c.word("auto_pad", "NOTSET") != "NOTSET")
    throw Inexpressible{"a transposed convolution whose padding the output decides"};
  Extents more;
  for (size_t i = 0; i + 2 < x.size(); ++i)
    more.push_back(y[i + 2] - ((x[i + 2] - 1) * s.strides[i] + s.dilations[i] * (s.kernel[i] - 1) +
                               1 - s.before[i] - s.behind[i]));
  return one_layer(
      c, of_dimensions("conv_transpose", x),
      fmt::format("out_channels: {}, {}{}, groups: {}, bias: false, output_padding: [{}]", y[1],
                  s.settings(), s.dilation(), c.number("group", 1), fmt::join(more, ", ")),
      {c.inputs[1].data}, of_sums(c));
}

void need_pool_padding(const Strides& s) {
  for (size_t i = 0; i < s.kernel.size(); ++i)
    if (2 * s.before[i] > s.dilations[i] * (s.kernel[i] - 1) + 1)
      throw Inexpressible{"padding that is more than half of a pool's window"};
}

Results max_pool(const Case& c) {
  const Extents& x = c.inputs[0].extents;
  const Strides s(c, x, list(c, "kernel_shape", x.size() - 2, 1));
  need_pool_padding(s);
  Net net;
  const ValueId y = net.layer(
      of_dimensions("max_pool", x),
      fmt::format("{{{}{}, ceil_mode: {}}}", s.settings(), s.dilation(), yes(c, "ceil_mode")),
      {net.real(c.inputs[0])});
  net.expect(y, c.outputs[0], kMoved);
  // Places count through all planes in ONNX; there is one in each case.
  if (c.outputs.size() > 1 && !yes(c, "storage_order"))
    net.expect(net.results(y).at(1), c.outputs[1], kMoved);
  return net.run();
}

Results average_pool(const Case& c) {
  const Extents& x = c.inputs[0].extents;
  const Strides s(c, x, list(c, "kernel_shape", x.size() - 2, 1));
  need_pool_padding(s);
  if (s.dilations != Extents(x.size() - 2, 1)) throw Inexpressible{"avg_pool has no dilation"};
  return one_layer(c, of_dimensions("avg_pool", x),
                   fmt::format("{}, ceil_mode: {}, count_include_pad: {}", s.settings(),
                               yes(c, "ceil_mode"), yes(c, "count_include_pad")),
                   {}, c.name.ends_with("last_window_starts_on_pad") ? kFourDigits : kRounded);
}

Results norm(const Case& c) {
  const bool instance = c.op == "InstanceNormalization";
  const std::string more =
      instance ? ", affine: true" : fmt::format(", num_groups: {}", c.number("num_groups", 1));
  return one_layer(c, instance ? "instance_norm" : "group_norm",
                   "eps: " + text(c.number("epsilon", 1e-5)) + more,
                   {c.inputs[1].data, c.inputs[2].data}, kRounded);
}

// ONNX's momentum is the part of what was, torch's of what comes; and ONNX's running variance is
// that of the batch, torch's is the estimate from it, n / (n - 1) times as much.
Results batch_norm(const Case& c) {
  const bool training = yes(c, "training_mode");
  const Tensor &mean = c.inputs[3], &variance = c.inputs[4];
  const double kept = c.number("momentum", 0.9);
  Net net({.training = training});
  const ValueId y = net.layer(
      "batch_norm2d",
      fmt::format("{{eps: {}, momentum: {}}}", text(c.number("epsilon", 1e-5)), text(1 - kept)),
      {net.real(c.inputs[0])}, {c.inputs[1].data, c.inputs[2].data});
  net.running(mean, variance);
  net.expect(y, c.outputs[0], kRounded);
  if (!training) return net.run();
  const double n = static_cast<double>(c.inputs[0].data.size() / mean.data.size());
  Tensor estimate = c.outputs[2];
  for (size_t i = 0; i < estimate.data.size(); ++i) {
    const double before = kept * variance.data[i];
    estimate.data[i] = before + (estimate.data[i] - before) * n / (n - 1);
  }
  net.expect(net.after_update(0), c.outputs[1], kRounded);
  net.expect(net.after_update(1), estimate, kRounded);
  return net.run();
}

// A slope for each element is one for each channel of a single sample, seen flat.
Results prelu(const Case& c) {
  const Extents &x = c.inputs[0].extents, &w = c.inputs[1].extents;
  const auto slopes = static_cast<int64_t>(c.inputs[1].data.size());
  const auto all = static_cast<int64_t>(c.inputs[0].data.size());
  if (w.back() != x.back()) throw Inexpressible{"slopes for an extent that is no channel"};
  Net net;
  net.expect(net.layer("prelu", fmt::format("num_parameters: {}", slopes),
                       {net.real(c.inputs[0], {all / slopes, slopes})}, {c.inputs[1].data}),
             c.outputs[0], kRounded);
  return net.run();
}

Results pad(const Case& c) {
  std::string mode = c.word("mode", "constant");
  if (mode == "edge") mode = "replicate";
  if (mode == "wrap") mode = "circular";
  const size_t rank = c.inputs[0].extents.size();
  Pad s{.value = c.has_input(2) ? c.inputs[2].data[0] : 0};
  std::vector<size_t> axes;
  for (size_t i = 0; i < (c.has_input(3) ? c.inputs[3].data.size() : rank); ++i) {
    const auto axis = static_cast<int64_t>(c.has_input(3) ? c.inputs[3].data[i] : double(i));
    axes.push_back(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    s.before[axes[i]] = static_cast<int64_t>(c.inputs[1].data[i]);
    s.behind[axes[i]] = static_cast<int64_t>(c.inputs[1].data[i + axes.size()]);
  }
  // As the layer says it: the last extent first, without the samples.
  std::vector<int64_t> sides;
  for (size_t d = rank; d-- > 1;) {
    sides.push_back(s.before[d]);
    sides.push_back(s.behind[d]);
  }
  if (s.before[0] != 0 || s.behind[0] != 0) throw Inexpressible{"more samples"};
  if (mode != "constant") sides.resize(2 * (rank - 2));  // the channels have no copies
  return one_layer(c, "pad",
                   fmt::format("padding: [{}], value: {}, mode: {}", fmt::join(sides, ", "),
                               text(s.value), mode),
                   {}, kMoved);
}

Results upsample(const Case& c) {
  const std::vector<double>& scales = c.inputs[1].data;
  return one_layer(c, "upsample", fmt::format("scale_factor: [{}, {}]", scales[2], scales[3]), {},
                   kMoved);
}

using Runner = Results (*)(const Case&);
const std::map<std::string, Runner, std::less<>> kRunners = {
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"MaxPool", max_pool},
    {"AveragePool", average_pool},
    {"GlobalAveragePool",
     [](const Case& c) {
       return one_layer(c, "adaptive_avg_pool2d", "output_size: 1", {}, kRounded);
     }},
    {"BatchNormalization", batch_norm},
    {"GroupNormalization", norm},
    {"InstanceNormalization", norm},
    {"PRelu", prelu},
    {"Pad", pad},
    {"Upsample", upsample},
};

}  // namespace

std::vector<Comparison> run_image_case(const Case& c) { return kRunners.at(c.op)(c); }

}  // namespace dpt::onnx
