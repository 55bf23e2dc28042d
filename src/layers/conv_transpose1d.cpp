// conv_transpose1d: transposed convolution of a sequence, [N, C, L] -> [N, out_channels, L'], where
// L' = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.
#include "layers/conv_transpose.h"

namespace dpt::layers {

LayerType conv_transpose1d() {
  return layer_type<ConvTranspose<1>>(
      "conv_transpose1d", "Transposed 1-D convolution: [N, C, L] to [N, out_channels, L'].");
}

}  // namespace dpt::layers
