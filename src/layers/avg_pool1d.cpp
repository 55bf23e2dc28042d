// avg_pool1d: the mean of each window, [N, C, L] -> [N, C, L'].
#include "layers/pool.h"

namespace dpt::layers {

LayerType avg_pool1d() {
  return layer_type<AvgPool<1>>("avg_pool1d", "Takes the mean of each window of a sequence.");
}

}  // namespace dpt::layers
