// layer_norm (Ba et al., 2016): (x - mean) / sqrt(variance + eps) over the last dimensions of each
// sample, then scaled and shifted; any shape. The variance is biased.
#include "layers/layer.h"
#include "layers/norms/row_norm.h"

namespace dpt::layers {
namespace {

struct LayerNorm : LastDimensions {
  static constexpr bool kNorm = true;
  static constexpr Usage kUsage{"torch.nn.LayerNorm",
                                "- layer_norm\n"
                                "- layer_norm: {normalized_shape: [8, 8], eps: 1e-6, "
                                "elementwise_affine: true, bias: false}"};

  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;

  static KeyTable<LayerNorm> keys() {
    return keys_of<LayerNorm>()
        .optional("eps", &LayerNorm::eps, "small number added to the variance", kNotNegative)
        .optional("elementwise_affine", &LayerNorm::elementwise_affine,
                  "whether each element has a learned scale and offset")
        .optional("bias", &LayerNorm::bias, "whether a learned bias is added");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const int dims = extents("layer_norm", g.shape(x)).rank();
    return row_norm(g, x, {.dims = dims, .eps = eps}, elementwise_affine, bias);
  }

  std::string torch(const Shape& x) const {
    return torch_call("nn.LayerNorm", extents("layer_norm", x))
        .keys(keys().arguments(*this), 1)
        .str();
  }
};

}  // namespace

LayerType layer_norm() {
  return layer_type<LayerNorm>("layer_norm", "Normalizes each sample over its last dimensions.");
}

}  // namespace dpt::layers
