// conv2d: convolution of an image, [N, C, H, W] -> [N, out_channels, H', W'].
#include "layers/convolution.h"

namespace dpt::layers {

LayerType conv2d() {
  return layer_type<Conv<2>>("conv2d", "Convolution: a learned window over an image.");
}

}  // namespace dpt::layers
