// max_pool3d: the largest element of each window, [N, C, D, H, W] -> [N, C, D', H', W'].
#include "layers/pool.h"

namespace dpt::layers {

LayerType max_pool3d() {
  return layer_type<MaxPool<3>>("max_pool3d", "Takes the maximum of each window of a volume.");
}

}  // namespace dpt::layers
