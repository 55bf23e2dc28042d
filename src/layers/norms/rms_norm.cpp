// rms_norm (Zhang and Sennrich, 2019): x / sqrt(mean(x^2) + eps) over the last dimensions of each
// sample, then scaled; any shape.
#include <limits>
#include <optional>

#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct RmsNormLayer {
  static constexpr bool kNorm = true;
  static constexpr Usage kUsage{"torch.nn.RMSNorm",
                                "- rms_norm\n"
                                "- rms_norm: {normalized_shape: [8, 8], eps: 1e-6, "
                                "elementwise_affine: false}"};

  std::vector<int64_t> normalized_shape;  // empty: the last dimension
  std::optional<double> eps;
  bool elementwise_affine = true;

  static KeyTable<RmsNormLayer> keys() {
    return KeyTable<RmsNormLayer>()
        .optional(
            "normalized_shape", &RmsNormLayer::normalized_shape,
            "sizes of the last dimensions, which are normalized together; by default the last one",
            kSize)
        .optional("eps", &RmsNormLayer::eps,
                  "small number added to the mean of the squares; none: 2^-23, float32's precision",
                  kNotNegative)
        .optional("elementwise_affine", &RmsNormLayer::elementwise_affine,
                  "whether each element has a learned scale");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape last = extents(g.shape(x));
    std::vector<ValueId> inputs = {x};
    if (elementwise_affine) inputs.push_back(g.parameter("weight", last, {.a = 1}));
    return g.apply("rms_norm", inputs,
                   RmsNorm{last.rank(), eps.value_or(std::numeric_limits<float>::epsilon())});
  }

  std::string torch(const Shape& x) const {
    const Shape last = extents(x);
    PythonCall call("nn.RMSNorm");
    if (last.rank() == 1)
      call.arg(last[0]);
    else
      call.arg(std::vector<int64_t>(last.extents().begin(), last.extents().end()));
    if (eps) call.key("eps", *eps);
    return call.key("elementwise_affine", elementwise_affine, true).str();
  }

 private:
  Shape extents(const Shape& x) const {
    if (x.rank() < 2) fail(Fault::spec, "rms_norm takes [N, ..., features], not {}", x.str());
    if (normalized_shape.empty()) return x.tail(x.rank() - 1);
    const Shape given{std::span<const int64_t>(normalized_shape)};
    if (given.rank() >= x.rank() || x.tail(x.rank() - given.rank()) != given)
      fail(Fault::spec, "rms_norm: normalized_shape {} does not match the last dimensions of {}",
           given.str(), x.str());
    return given;
  }
};

}  // namespace

LayerType rms_norm() {
  return layer_type<RmsNormLayer>(
      "rms_norm", "Divides each sample by the root mean square over its last dimensions.");
}

}  // namespace dpt::layers
