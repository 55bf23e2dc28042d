// adaptive_avg_pool3d: averages over as many regions of a volume as output_size asks for,
// [N, C, D, H, W] -> [N, C, output_size].
#include "layers/adaptive_pool.h"

namespace dpt::layers {
namespace {

constexpr AdaptiveNames kAdaptiveAvg3d{"adaptive_avg_pool3d", "adaptive_avg_pool",
                                       "torch.nn.AdaptiveAvgPool3d",
                                       "- adaptive_avg_pool3d: 1\n"
                                       "- adaptive_avg_pool3d: {output_size: [1, 7, 7]}"};

}  // namespace

LayerType adaptive_avg_pool3d() {
  return layer_type<AdaptivePool<3, kAdaptiveAvg3d>>(
      kAdaptiveAvg3d.layer,
      "Divides a volume into output_size regions and takes the mean of each.");
}

}  // namespace dpt::layers
