// The layers conv_transpose1d and conv_transpose2d, as one template over the number of spatial
// dimensions: transposed convolution, the operation of a convolution's input gradient.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "layers/grouped_convolution.h"
#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {

template <int kDims>
struct ConvTranspose {
  static constexpr Usage kUsage =
      kDims == 1
          ? Usage{"torch.nn.ConvTranspose1d",
                  "- conv_transpose1d: {out_channels: 8, kernel_size: 2, stride: 2}\n"
                  "- conv_transpose1d: {out_channels: 8, kernel_size: 3, stride: 2, padding: 1,\n"
                  "    output_padding: 1, groups: 2, bias: false, dilation: 1, padding_mode: "
                  "zeros}"}
          : Usage{"torch.nn.ConvTranspose2d",
                  "- conv_transpose2d: {out_channels: 8, kernel_size: 2, stride: 2}\n"
                  "- conv_transpose2d: {out_channels: 8, kernel_size: [3, 3], stride: 2, padding: "
                  "1,\n"
                  "    output_padding: 1, groups: 2, bias: false, dilation: 1, padding_mode: "
                  "zeros}"};

  static constexpr std::string_view kName = kDims == 1 ? "conv_transpose1d" : "conv_transpose2d";

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
                             : "rows and columns removed from each side of the output",
                  kSizeOrZero)
        .optional("output_padding", &ConvTranspose::output_padding,
                  kDims == 1 ? "elements added at the end of the output"
                             : "rows and columns added at the end of the output",
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
    for (size_t i = 0; i < 2; ++i)
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
    return g.apply("convolution_transpose",
                   convolution_inputs(g, x, channels, out_channels / groups,
                                      spread(kernel_size, kDims), bias ? out_channels : 0),
                   settings());
  }

  std::string torch(const Shape& x) const {
    PythonCall call(kDims == 1 ? "nn.ConvTranspose1d" : "nn.ConvTranspose2d");
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
    const Pair around = pair_of(spread(padding, kDims), 0);
    return {.window = {.kernel = pair_of(spread(kernel_size, kDims)),
                       .stride = pair_of(spread(stride, kDims)),
                       .dilation = pair_of(spread(dilation, kDims)),
                       .before = around,
                       .behind = around},
            .groups = groups,
            .output_padding = pair_of(spread(output_padding, kDims), 0)};
  }
};

}  // namespace dpt::layers
