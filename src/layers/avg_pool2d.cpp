// avg_pool2d: the mean of each window, [N, C, H, W] -> [N, C, H', W'].
#include "layers/pool.h"

namespace dpt::layers {

LayerType avg_pool2d() {
  return layer_type<AvgPool<2>>("avg_pool2d", "Takes the mean of each window.");
}

}  // namespace dpt::layers
