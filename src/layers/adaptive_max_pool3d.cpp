// adaptive_max_pool3d: the largest elements of as many regions of a volume as output_size asks for,
// [N, C, D, H, W] -> [N, C, output_size].
#include "layers/adaptive_pool.h"

namespace dpt::layers {
namespace {

constexpr AdaptiveNames kAdaptiveMax3d{"adaptive_max_pool3d", "adaptive_max_pool",
                                       "torch.nn.AdaptiveMaxPool3d",
                                       "- adaptive_max_pool3d: 1\n"
                                       "- adaptive_max_pool3d: {output_size: [1, 7, 7]}"};

}  // namespace

LayerType adaptive_max_pool3d() {
  return layer_type<AdaptivePool<3, kAdaptiveMax3d>>(
      kAdaptiveMax3d.layer,
      "Divides a volume into output_size regions and takes the maximum of each.");
}

}  // namespace dpt::layers
