// batch_norm1d: batch normalization of [N, C] or [N, C, L]; see batch_norm.h.
#include "layers/norms/batch_norm.h"

namespace dpt::layers {
namespace {

struct BatchNorm1d : BatchNormLayer {
  static constexpr bool kNorm = true;
  static constexpr Usage kUsage{
      "torch.nn.BatchNorm1d",
      "- batch_norm1d\n"
      "- batch_norm1d: {eps: 0.001, momentum: 0.01, affine: true, bias: false,\n"
      "    track_running_stats: false}"};
  static KeyTable<BatchNorm1d> keys() { return keys_of<BatchNorm1d>(); }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const int rank = shape.rank();
    if (rank < 2 || rank > 3)
      fail(Fault::spec, "batch_norm1d takes [N, C] or [N, C, L], not {}{}", shape.str(),
           batch_norm_for(rank));
    return lower(g, x);
  }

  std::string torch(const Shape& x) const { return torch_as("nn.BatchNorm1d", x); }
};

}  // namespace

LayerType batch_norm1d() {
  return layer_type<BatchNorm1d>("batch_norm1d",
                                 "Normalizes each channel over the batch: [N, C] or [N, C, L].");
}

}  // namespace dpt::layers
