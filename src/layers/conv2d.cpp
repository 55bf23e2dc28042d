// conv2d: convolution of an image, [N, C, H, W] -> [N, out_channels, H', W'].
#include "layers/convolution.h"

namespace dpt::layers {

LayerType conv2d() {
  return layer_type<Conv<2>>("conv2d",
                             "2-D convolution: [N, C, H, W] to [N, out_channels, H', W'].");
}

}  // namespace dpt::layers
