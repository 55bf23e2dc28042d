// adaptive_max_pool2d: the largest elements of as many regions of an image as output_size asks for,
// [N, C, H, W] -> [N, C, output_size].
#include "layers/adaptive_pool.h"

namespace dpt::layers {
namespace {

constexpr AdaptiveNames kAdaptiveMax2d{"adaptive_max_pool2d", "adaptive_max_pool",
                                       "torch.nn.AdaptiveMaxPool2d",
                                       "- adaptive_max_pool2d: 1\n"
                                       "- adaptive_max_pool2d: {output_size: [7, 7]}"};

}  // namespace

LayerType adaptive_max_pool2d() {
  return layer_type<AdaptivePool<2, kAdaptiveMax2d>>(
      kAdaptiveMax2d.layer,
      "Divides an image into output_size regions and takes the maximum of each.");
}

}  // namespace dpt::layers
