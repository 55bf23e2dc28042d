// avg_pool3d: the mean of each window, [N, C, D, H, W] -> [N, C, D', H', W'].
#include "layers/pool.h"

namespace dpt::layers {

LayerType avg_pool3d() {
  return layer_type<AvgPool<3>>("avg_pool3d", "Takes the mean of each window of a volume.");
}

}  // namespace dpt::layers
