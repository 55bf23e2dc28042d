// batch_norm3d: batch normalization of [N, C, D, H, W]; see batch_norm.h.
#include "layers/norms/batch_norm.h"

namespace dpt::layers {
namespace {

struct BatchNorm3d : BatchNormLayer {
  static constexpr bool kNorm = true;
  static constexpr Usage kUsage{
      "torch.nn.BatchNorm3d",
      "- batch_norm3d\n"
      "- batch_norm3d: {eps: 0.001, momentum: 0.01, affine: true, bias: false,\n"
      "    track_running_stats: false}"};
  static KeyTable<BatchNorm3d> keys() { return keys_of<BatchNorm3d>(); }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const int rank = shape.rank();
    if (rank != 5)
      fail(Fault::spec, "batch_norm3d takes [N, C, D, H, W], not {}{}", shape.str(),
           batch_norm_for(rank));
    return lower(g, x);
  }

  std::string torch(const Shape& x) const { return torch_as("nn.BatchNorm3d", x); }
};

}  // namespace

LayerType batch_norm3d() {
  return layer_type<BatchNorm3d>("batch_norm3d",
                                 "Normalizes each channel over the batch: [N, C, D, H, W].");
}

}  // namespace dpt::layers
