// glu (Dauphin et al., 2017): a * sigmoid(b) with a and b the halves of x along one dimension.
#include "base/fail.h"
#include "graph/attrs.h"
#include "layers/dimension.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct GluLayer {
  static constexpr Usage kUsage{"torch.nn.GLU",
                                "- glu\n"
                                "- glu: {dim: 1}"};

  int64_t dim = -1;

  static KeyTable<GluLayer> keys() {
    return KeyTable<GluLayer>().optional(
        "dim", &GluLayer::dim, "dimension that is halved; -1: the last one, 1: the channels");
  }
  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const int at = sample_dimension("glu", "dim", dim, shape);
    if (shape[at] % 2 != 0)
      fail(Fault::spec,
           "glu: dimension {} of {} has {} elements, which cannot be halved; use an even number, "
           "or another 'dim'",
           at, shape.str(), shape[at]);
    return g.apply("glu", {x}, Glu{at});
  }
};

}  // namespace

LayerType glu() {
  return layer_type<GluLayer>(
      "glu", "Gated linear unit: the first half times sigmoid of the second half of a dimension.");
}

}  // namespace dpt::layers
