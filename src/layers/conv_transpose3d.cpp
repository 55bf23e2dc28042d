// conv_transpose3d: transposed convolution of a volume, [N, C, D, H, W] -> [N, out_channels, D',
// H', W'], where D' = (D - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.
#include "layers/conv_transpose.h"

namespace dpt::layers {

LayerType conv_transpose3d() {
  return layer_type<ConvTranspose<3>>(
      "conv_transpose3d",
      "Transposed 3-D convolution: [N, C, D, H, W] to [N, out_channels, D', H', W'].");
}

}  // namespace dpt::layers
