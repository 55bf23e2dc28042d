// layer_norm (Ba et al., 2016): (x - mean) / sqrt(variance + eps) over the last dimensions of each
// sample, then scaled and shifted; any shape. The variance is biased.
#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct LayerNormLayer {
  static constexpr bool kNorm = true;
  static constexpr Usage kUsage{"torch.nn.LayerNorm",
                                "- layer_norm\n"
                                "- layer_norm: {normalized_shape: [8, 8], eps: 1e-6, "
                                "elementwise_affine: true, bias: false}"};

  std::vector<int64_t> normalized_shape;  // empty: the last dimension
  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;

  static KeyTable<LayerNormLayer> keys() {
    return KeyTable<LayerNormLayer>()
        .optional(
            "normalized_shape", &LayerNormLayer::normalized_shape,
            "sizes of the last dimensions, which are normalized together; by default the last one",
            kSize)
        .optional("eps", &LayerNormLayer::eps, "small number added to the variance", kNotNegative)
        .optional("elementwise_affine", &LayerNormLayer::elementwise_affine,
                  "whether each element has a learned scale and offset")
        .optional("bias", &LayerNormLayer::bias, "whether a learned bias is added");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const Shape last = extents(shape);
    std::vector<ValueId> inputs = {x};
    if (elementwise_affine) {
      inputs.push_back(g.parameter("weight", last, {.a = 1}));
      if (bias) inputs.push_back(g.parameter("bias", last, {.a = 0}));
    }
    return g.apply("layer_norm", inputs, LayerNorm{last.rank(), eps});
  }

  std::string torch(const Shape& x) const {
    const Shape last = extents(x);
    PythonCall call("nn.LayerNorm");
    if (last.rank() == 1)
      call.arg(last[0]);
    else
      call.arg(std::vector<int64_t>(last.extents().begin(), last.extents().end()));
    return call.key("eps", eps, 1e-5)
        .key("elementwise_affine", elementwise_affine, true)
        .key("bias", bias, true)
        .str();
  }

 private:
  Shape extents(const Shape& x) const {
    if (x.rank() < 2) fail(Fault::spec, "layer_norm takes [N, ..., features], not {}", x.str());
    if (normalized_shape.empty()) return x.tail(x.rank() - 1);
    const Shape given{std::span<const int64_t>(normalized_shape)};
    if (given.rank() >= x.rank() || x.tail(x.rank() - given.rank()) != given)
      fail(Fault::spec, "layer_norm: normalized_shape {} does not match the last dimensions of {}",
           given.str(), x.str());
    return given;
  }
};

}  // namespace

LayerType layer_norm() {
  return layer_type<LayerNormLayer>("layer_norm",
                                    "Normalizes each sample over its last dimensions.");
}

}  // namespace dpt::layers
