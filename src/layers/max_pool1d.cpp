// max_pool1d: the largest element of each window, [N, C, L] -> [N, C, L'].
#include "layers/pool.h"

namespace dpt::layers {

LayerType max_pool1d() {
  return layer_type<MaxPool<1>>("max_pool1d", "Takes the maximum of each window of a sequence.");
}

}  // namespace dpt::layers
