// conv1d: convolution of a sequence, [N, C, L] -> [N, out_channels, L'].
#include "layers/convolution.h"

namespace dpt::layers {

LayerType conv1d() {
  return layer_type<Conv<1>>("conv1d", "Convolution: a learned window over a sequence.");
}

}  // namespace dpt::layers
