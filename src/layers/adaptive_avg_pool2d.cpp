// adaptive_avg_pool2d: averages over as many regions of an image as output_size asks for, [N, C, H,
// W] -> [N, C, output_size].
#include "layers/adaptive_pool.h"

namespace dpt::layers {
namespace {

constexpr AdaptiveNames kAdaptiveAvg2d{"adaptive_avg_pool2d", "adaptive_avg_pool",
                                       "torch.nn.AdaptiveAvgPool2d",
                                       "- adaptive_avg_pool2d: 1\n"
                                       "- adaptive_avg_pool2d: {output_size: [7, 7]}"};

}  // namespace

LayerType adaptive_avg_pool2d() {
  return layer_type<AdaptivePool<2, kAdaptiveAvg2d>>(
      kAdaptiveAvg2d.layer,
      "Divides an image into output_size regions and takes the mean of each.");
}

}  // namespace dpt::layers
