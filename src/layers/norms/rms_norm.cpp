// rms_norm (Zhang and Sennrich, 2019): x / sqrt(mean(x^2) + eps) over the last dimensions of each
// sample, then scaled; any shape.
#include <limits>
#include <optional>

#include "layers/layer.h"
#include "layers/norms/row_norm.h"

namespace dpt::layers {
namespace {

struct RmsNorm : LastDimensions {
  static constexpr bool kNorm = true;
  static constexpr Usage kUsage{"torch.nn.RMSNorm",
                                "- rms_norm\n"
                                "- rms_norm: {normalized_shape: [8, 8], eps: 1e-6, "
                                "elementwise_affine: false}"};

  std::optional<double> eps;
  bool elementwise_affine = true;

  static KeyTable<RmsNorm> keys() {
    return keys_of<RmsNorm>()
        .optional("eps", &RmsNorm::eps,
                  "small number added to the mean of the squares; none: 2^-23, float32's precision",
                  kNotNegative)
        .optional("elementwise_affine", &RmsNorm::elementwise_affine,
                  "whether each element has a learned scale");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const RowNorm norm{.dims = extents("rms_norm", g.shape(x)).rank(),
                       .center = false,
                       .eps = eps.value_or(std::numeric_limits<float>::epsilon())};
    return row_norm(g, x, norm, elementwise_affine, false);
  }

  std::string torch(const Shape& x) const {
    return torch_call("nn.RMSNorm", extents("rms_norm", x)).keys(keys().arguments(*this), 1).str();
  }
};

}  // namespace

LayerType rms_norm() {
  return layer_type<RmsNorm>(
      "rms_norm", "Divides each sample by the root mean square over its last dimensions.");
}

}  // namespace dpt::layers
