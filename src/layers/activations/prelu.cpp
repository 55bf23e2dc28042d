// prelu: x where x > 0, else a learned number times x, one for all or one for each channel of
// [N, C, ...] (He et al. 2015).
#include "base/count.h"
#include "base/fail.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct PReluLayer {
  static constexpr Usage kUsage{"torch.nn.PReLU",
                                "- prelu\n"
                                "- prelu: {num_parameters: 16, init: 0.1}"};

  int64_t num_parameters = 1;
  double init = 0.25;

  static KeyTable<PReluLayer> keys() {
    return KeyTable<PReluLayer>()
        .optional("num_parameters", &PReluLayer::num_parameters,
                  "1, or the number of channels for a slope per channel", kSize)
        .optional("init", &PReluLayer::init, "initial slope");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const int64_t channels = shape.rank() < 2 ? 1 : shape[1];
    if (num_parameters != 1 && num_parameters != channels)
      fail(Fault::spec, "prelu: num_parameters is {}, but the input {} has {}", num_parameters,
           shape.str(), counted(channels, "channel"));
    return g.apply("prelu", {x, g.parameter("weight", {num_parameters}, {.a = init})});
  }
};

}  // namespace

LayerType prelu() {
  return layer_type<PReluLayer>("prelu", "x, or a learned slope times x if x is negative.");
}

}  // namespace dpt::layers
