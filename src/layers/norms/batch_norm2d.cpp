// batch_norm2d: batch normalization of [N, C, H, W]; see batch_norm.h.
#include "layers/norms/batch_norm.h"

namespace dpt::layers {
namespace {

struct BatchNorm2d : BatchNormLayer {
  static constexpr bool kNorm = true;
  static constexpr Usage kUsage{
      "torch.nn.BatchNorm2d",
      "- batch_norm2d\n"
      "- batch_norm2d: {eps: 0.001, momentum: 0.01, affine: true, bias: false,\n"
      "    track_running_stats: false}"};
  static KeyTable<BatchNorm2d> keys() { return keys_of<BatchNorm2d>(); }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const int rank = shape.rank();
    if (rank != 4)
      fail(Fault::spec, "batch_norm2d takes [N, C, H, W], not {}{}", shape.str(),
           batch_norm_for(rank));
    return lower(g, x);
  }

  std::string torch(const Shape& x) const { return torch_as("nn.BatchNorm2d", x); }
};

}  // namespace

LayerType batch_norm2d() {
  return layer_type<BatchNorm2d>("batch_norm2d",
                                 "Normalizes each channel over the batch: [N, C, H, W].");
}

}  // namespace dpt::layers
