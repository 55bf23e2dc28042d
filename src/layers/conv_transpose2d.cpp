// conv_transpose2d: transposed convolution of an image, [N, C, H, W] -> [N, out_channels, H', W'],
// where H' = (H - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.
#include "layers/conv_transpose.h"

namespace dpt::layers {

LayerType conv_transpose2d() {
  return layer_type<ConvTranspose<2>>(
      "conv_transpose2d", "Transposed 2-D convolution: [N, C, H, W] to [N, out_channels, H', W'].");
}

}  // namespace dpt::layers
