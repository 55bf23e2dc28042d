// conv1d: convolution of a sequence, [N, C, L] -> [N, out_channels, L'].
#include "layers/convolution.h"

namespace dpt::layers {

LayerType conv1d() {
  return layer_type<Conv<1>>("conv1d", "1-D convolution: [N, C, L] to [N, out_channels, L'].");
}

}  // namespace dpt::layers
