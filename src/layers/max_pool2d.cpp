// max_pool2d: the largest element of each window, [N, C, H, W] -> [N, C, H', W'].
#include "layers/pool.h"

namespace dpt::layers {

LayerType max_pool2d() {
  return layer_type<MaxPool<2>>("max_pool2d", "Takes the maximum of each window.");
}

}  // namespace dpt::layers
