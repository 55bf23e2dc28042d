// adaptive_avg_pool1d: averages over as many regions of a sequence as output_size asks for, [N, C,
// L] -> [N, C, output_size].
#include "layers/adaptive_pool.h"

namespace dpt::layers {
namespace {

constexpr AdaptiveNames kAdaptiveAvg1d{"adaptive_avg_pool1d", "adaptive_avg_pool",
                                       "torch.nn.AdaptiveAvgPool1d",
                                       "- adaptive_avg_pool1d: 1\n"
                                       "- adaptive_avg_pool1d: {output_size: 7}"};

}  // namespace

LayerType adaptive_avg_pool1d() {
  return layer_type<AdaptivePool<1, kAdaptiveAvg1d>>(
      kAdaptiveAvg1d.layer,
      "Divides a sequence into output_size regions and takes the mean of each.");
}

}  // namespace dpt::layers
