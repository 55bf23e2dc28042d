// adaptive_max_pool1d: the largest elements of as many regions of a sequence as output_size asks
// for, [N, C, L] -> [N, C, output_size].
#include "layers/adaptive_pool.h"

namespace dpt::layers {
namespace {

constexpr AdaptiveNames kAdaptiveMax1d{"adaptive_max_pool1d", "adaptive_max_pool",
                                       "torch.nn.AdaptiveMaxPool1d",
                                       "- adaptive_max_pool1d: 1\n"
                                       "- adaptive_max_pool1d: {output_size: 7}"};

}  // namespace

LayerType adaptive_max_pool1d() {
  return layer_type<AdaptivePool<1, kAdaptiveMax1d>>(
      kAdaptiveMax1d.layer,
      "Divides a sequence into output_size regions and takes the maximum of each.");
}

}  // namespace dpt::layers
