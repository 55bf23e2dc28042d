// conv1d, conv2d and conv3d: convolution of sequences, images and volumes,
// [N, C, L] -> [N, out_channels, L'], [N, C, H, W] -> [N, out_channels, H', W'] and
// [N, C, D, H, W] -> [N, out_channels, D', H', W'].
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "formats/json.h"
#include "layers/grouped_convolution.h"
#include "layers/layer.h"
#include "layers/pad_inside.h"
#include "layers/window.h"

namespace dpt::layers {
namespace {

// The key `padding`: 'same', 'valid', or numbers.
struct Padding {
  std::string word;
  Sizes sizes = {0};

  static void read(Padding& p, const Node& n, Diagnostics& d) {
    if (n.kind == Node::Kind::scalar && (n.text == "same" || n.text == "valid")) {
      p.word = n.text;
      return;
    }
    const bool many = n.kind == Node::Kind::list;
    Sizes sizes;
    for (size_t i = 0; i < (many ? n.items.size() : 1); ++i) {
      int64_t value = 0;
      const Node& item = many ? n.items[i] : n;
      if (!many && item.kind == Node::Kind::scalar && !parse_scalar(item, value)) {
        d.error(n.where, fmt::format("'padding' must be an integer, a list of them, same or valid, "
                                     "not '{:.40}'",
                                     n.text));
        return;
      }
      if (!read_value<int64_t>("padding", item, kSizeOrZero, value, d)) return;
      sizes.push_back(value);
    }
    p.sizes = sizes;
  }
};

inline Json padding_schema() {
  constexpr int64_t kMost = 2147483647;
  const Json extent = {{"type", "integer"}, {"minimum", 0}, {"maximum", kMost}};
  return {{"type", Json::array({"integer", "array", "string"})},
          {"minimum", 0},
          {"maximum", kMost},
          {"items", extent},
          {"if", {{"type", "string"}}},
          {"then", {{"enum", Json::array({"same", "valid"})}}}};
}

template <int kDims>
struct Conv {
  static constexpr Usage kUsage =
      kDims == 1 ? Usage{"torch.nn.Conv1d",
                         "- conv1d: {out_channels: 16, kernel_size: 3, padding: same}\n"
                         "- conv1d: {out_channels: 16, kernel_size: 3, stride: 2, padding: 1,\n"
                         "    dilation: 1, groups: 4, bias: false, padding_mode: circular}"}
      : kDims == 2
          ? Usage{"torch.nn.Conv2d",
                  "- conv2d: {out_channels: 16, kernel_size: 3, padding: same}\n"
                  "- conv2d: {out_channels: 16, kernel_size: [3, 5], stride: 2, padding: [1, 2],\n"
                  "    dilation: 1, groups: 4, bias: false, padding_mode: reflect}"}
          : Usage{"torch.nn.Conv3d",
                  "- conv3d: {out_channels: 16, kernel_size: 3, padding: same}\n"
                  "- conv3d: {out_channels: 16, kernel_size: [1, 3, 3], stride: 2,\n"
                  "    padding: [0, 1, 1], dilation: 1, groups: 4, bias: false,\n"
                  "    padding_mode: replicate}"};

  static constexpr std::string_view kName = kDims == 1   ? "conv1d"
                                            : kDims == 2 ? "conv2d"
                                                         : "conv3d";

  int64_t out_channels = 0;
  Sizes kernel_size, stride = {1}, dilation = {1};
  Padding padding;
  int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";

  static KeyTable<Conv> keys() {
    return KeyTable<Conv>()
        .required("out_channels", &Conv::out_channels, "number of output channels", kSize)
        .required("kernel_size", &Conv::kernel_size,
                  "size of the window: one number, or one per dimension", kSize)
        .optional("stride", &Conv::stride, "step of the window", kSize)
        .optional_section(
            "padding",
            "elements added on each side: numbers, `same` (output size is input size) or `valid` "
            "(none)",
            [](Conv& c, const Node& n, Diagnostics& d) { Padding::read(c.padding, n, d); },
            {.kind = "an integer, a list of them, same or valid",
             .fallback = "0",
             .schema = padding_schema()})
        .optional("dilation", &Conv::dilation, "distance between the window's elements", kSize)
        .optional(
            "groups", &Conv::groups,
            "number of channel groups; an output channel sees only the input channels of its group",
            kSize)
        .optional("bias", &Conv::bias, "whether a learned bias is added")
        .choice("padding_mode", &Conv::padding_mode, {"zeros", "reflect", "replicate", "circular"},
                "how the padding is filled");
  }

  static void check(const Conv& c, const Owner& owner, Diagnostics& d) {
    check_count("kernel_size", c.kernel_size, kDims, owner, d);
    check_count("stride", c.stride, kDims, owner, d);
    check_count("padding", c.padding.sizes, kDims, owner, d);
    check_count("dilation", c.dilation, kDims, owner, d);
    check_groups(c.out_channels, c.groups, owner, d);
    if (c.padding.word == "same" && std::ranges::any_of(c.stride, [](int64_t s) { return s != 1; }))
      d.error(owner.at("padding"), "padding: same needs stride 1, as in torch");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const TensorDesc in = g.desc(x);
    need_image(kName, in, kDims);
    const int64_t channels = grouped_channels(kName, in.shape, groups);
    Convolution settings{window(), groups};
    require_window_fits(kName, in.shape, settings.window);
    if (padding_mode != "zeros") x = padded_inside(g, x, kName, padding_mode, settings.window);
    return g.apply("convolution",
                   convolution_inputs(g, x, out_channels, channels / groups, settings.window.kernel,
                                      bias ? out_channels : 0),
                   settings);
  }

  std::string torch(const Shape& x) const {
    PythonCall call(fmt::format("nn.Conv{}d", kDims));
    call.arg(x[1]).arg(out_channels);
    add_sizes(call, "kernel_size", kernel_size);
    add_sizes(call, "stride", stride, 1);
    if (padding.word.empty())
      add_sizes(call, "padding", padding.sizes, 0);
    else
      call.key("padding", padding.word);
    add_sizes(call, "dilation", dilation, 1);
    return call.key("groups", groups, 1)
        .key("bias", bias, true)
        .key("padding_mode", padding_mode, "zeros")
        .str();
  }

 private:
  Window window() const {
    Window w{.kernel = extents_from(kernel_size, kDims),
             .stride = extents_from(stride, kDims),
             .dilation = extents_from(dilation, kDims)};
    if (padding.word.empty()) w.before = w.behind = extents_from(padding.sizes, kDims, 0);
    if (padding.word == "same")
      for (size_t i = 0; i < 3; ++i) {
        const int64_t all = covered(w, i) - 1;
        w.before[i] = all / 2;
        w.behind[i] = all - all / 2;
      }
    return w;
  }
};

}  // namespace

std::vector<LayerType> convolutions() {
  return {
      layer_type<Conv<1>>("conv1d", "1-D convolution: [N, C, L] to [N, out_channels, L']."),
      layer_type<Conv<2>>("conv2d", "2-D convolution: [N, C, H, W] to [N, out_channels, H', W']."),
      layer_type<Conv<3>>("conv3d",
                          "3-D convolution: [N, C, D, H, W] to [N, out_channels, D', H', W'].")};
}

}  // namespace dpt::layers
