// conv3d: convolution of a volume, [N, C, D, H, W] -> [N, out_channels, D', H', W'].
#include "layers/convolution.h"

namespace dpt::layers {

LayerType conv3d() {
  return layer_type<Conv<3>>("conv3d",
                             "3-D convolution: [N, C, D, H, W] to [N, out_channels, D', H', W'].");
}

}  // namespace dpt::layers
