// conv_transpose1d, conv_transpose2d and conv_transpose3d: transposed convolution of sequences,
// images and volumes, the operation of a convolution's input gradient. An extent L becomes
// L' = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "layers/grouped_convolution.h"
#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {
namespace {

template <int kDims>
struct ConvTranspose {
  static constexpr Usage kUsage =
      kDims == 1
          ? Usage{"torch.nn.ConvTranspose1d",
                  "- conv_transpose1d: {out_channels: 8, kernel_size: 2, stride: 2}\n"
                  "- conv_transpose1d: {out_channels: 8, kernel_size: 3, stride: 2, padding: 1,\n"
                  "    output_padding: 1, groups: 2, bias: false, dilation: 1, padding_mode: "
                  "zeros}"}
      : kDims == 3
          ? Usage{"torch.nn.ConvTranspose3d",
                  "- conv_transpose3d: {out_channels: 8, kernel_size: 2, stride: 2}\n"
                  "- conv_transpose3d: {out_channels: 8, kernel_size: [1, 3, 3], stride: [1, 2, "
                  "2],\n"
                  "    padding: [0, 1, 1], output_padding: 0, groups: 2, bias: false, dilation: "
                  "1,\n"
                  "    padding_mode: zeros}"}
          : Usage{"torch.nn.ConvTranspose2d",
                  "- conv_transpose2d: {out_channels: 8, kernel_size: 2, stride: 2}\n"
                  "- conv_transpose2d: {out_channels: 8, kernel_size: [3, 3], stride: 2, padding: "
                  "1,\n"
                  "    output_padding: 1, groups: 2, bias: false, dilation: 1, padding_mode: "
                  "zeros}"};

  static constexpr std::string_view kName = kDims == 1   ? "conv_transpose1d"
                                            : kDims == 2 ? "conv_transpose2d"
                                                         : "conv_transpose3d";

  int64_t out_channels = 0;
  Sizes kernel_size, stride = {1}, padding = {0}, output_padding = {0}, dilation = {1};
  int64_t groups = 1;
  bool bias = true;
  std::string padding_mode = "zeros";

  static KeyTable<ConvTranspose> keys() {
    return KeyTable<ConvTranspose>()
        .required("out_channels", &ConvTranspose::out_channels, "number of output channels", kSize)
        .required("kernel_size", &ConvTranspose::kernel_size,
                  kDims == 1 ? "size of the window"
                             : "size of the window: one number, or one per dimension",
                  kSize)
        .optional("stride", &ConvTranspose::stride, "step of the window in the output", kSize)
        .optional("padding", &ConvTranspose::padding,
                  kDims == 1 ? "elements removed from each side of the output"
                             : "elements removed from both sides of each dimension of the output",
                  kSizeOrZero)
        .optional("output_padding", &ConvTranspose::output_padding,
                  kDims == 1 ? "elements added at the end of the output"
                             : "elements added at the end of each dimension of the output",
                  kSizeOrZero)
        .optional(
            "groups", &ConvTranspose::groups,
            "number of channel groups; an output channel sees only the input channels of its group",
            kSize)
        .optional("bias", &ConvTranspose::bias, "whether a learned bias is added")
        .optional("dilation", &ConvTranspose::dilation, "distance between the window's elements",
                  kSize)
        .choice("padding_mode", &ConvTranspose::padding_mode, {"zeros"},
                "how the padding is filled");
  }

  static void check(const ConvTranspose& c, const Owner& owner, Diagnostics& d) {
    check_count("kernel_size", c.kernel_size, kDims, owner, d);
    check_count("stride", c.stride, kDims, owner, d);
    check_count("padding", c.padding, kDims, owner, d);
    check_count("output_padding", c.output_padding, kDims, owner, d);
    check_count("dilation", c.dilation, kDims, owner, d);
    if (!d.ok()) return;
    check_groups(c.out_channels, c.groups, owner, d);
    const Convolution s = c.settings();
    for (size_t i = 0; i < 3; ++i)
      if (s.output_padding[i] >= std::max(s.window.stride[i], s.window.dilation[i])) {
        d.error(owner.at("output_padding"),
                "output_padding must be smaller than stride or dilation, as in torch");
        return;
      }
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const TensorDesc in = g.desc(x);
    need_image(kName, in, kDims);
    const int64_t channels = grouped_channels(kName, in.shape, groups);
    const Convolution s = settings();
    return g.apply("convolution_transpose",
                   convolution_inputs(g, x, channels, out_channels / groups, s.window.kernel,
                                      bias ? out_channels : 0),
                   s);
  }

  std::string torch(const Shape& x) const {
    PythonCall call(fmt::format("nn.ConvTranspose{}d", kDims));
    call.arg(x[1]).arg(out_channels);
    add_sizes(call, "kernel_size", kernel_size);
    add_sizes(call, "stride", stride, 1);
    add_sizes(call, "padding", padding, 0);
    add_sizes(call, "output_padding", output_padding, 0);
    call.key("groups", groups, 1).key("bias", bias, true);
    return add_sizes(call, "dilation", dilation, 1).str();
  }

 private:
  Convolution settings() const {
    const Extents around = extents_from(padding, kDims, 0);
    return {.window = {.kernel = extents_from(kernel_size, kDims),
                       .stride = extents_from(stride, kDims),
                       .dilation = extents_from(dilation, kDims),
                       .before = around,
                       .behind = around},
            .groups = groups,
            .output_padding = extents_from(output_padding, kDims, 0)};
  }
};

}  // namespace

std::vector<LayerType> transposed_convolutions() {
  return {
      layer_type<ConvTranspose<1>>(
          "conv_transpose1d", "Transposed 1-D convolution: [N, C, L] to [N, out_channels, L']."),
      layer_type<ConvTranspose<2>>(
          "conv_transpose2d",
          "Transposed 2-D convolution: [N, C, H, W] to [N, out_channels, H', W']."),
      layer_type<ConvTranspose<3>>(
          "conv_transpose3d",
          "Transposed 3-D convolution: [N, C, D, H, W] to [N, out_channels, D', H', W'].")};
}

}  // namespace dpt::layers
