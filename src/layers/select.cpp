// select: one index of a dimension, which is removed: [N, L, E] -> [N, E] for dim 1. Same as
// torch.select, for any dimension but the batch.
#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/dimension.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

constexpr std::string_view kSelectTorch = R"py(class Select(nn.Module):
    """One index of a dimension, which is removed."""

    def __init__(self, dim, index):
        super().__init__()
        self.dim, self.index = dim, index

    def forward(self, x):
        return x.select(self.dim, self.index)
)py";

struct SelectLayer {
  static constexpr std::string_view kTorchClass = kSelectTorch;
  static constexpr Usage kUsage{"torch.select",
                                "- select: 0\n"
                                "- select: {index: -1, dim: 2}"};

  int64_t index = 0, dim = 1;

  static KeyTable<SelectLayer> keys() {
    return KeyTable<SelectLayer>()
        .required("index", &SelectLayer::index, "index to take; negative: counted from the end")
        .optional("dim", &SelectLayer::dim, "dimension to take it from; 0 is the batch");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const TensorDesc in = g.desc(x);
    const int at = sample_dimension("select", "dim", dim, in.shape);
    const int64_t extent = in.shape[at];
    if (index < -extent || index >= extent)
      fail(Fault::spec, "select: index is {}, but dimension {} of {} has indices {} to {}", index,
           at, in.shape.str(), -extent, extent - 1);
    std::vector<int64_t> extents(in.shape.extents().begin(), in.shape.extents().end());
    extents.erase(extents.begin() + at);
    const ValueId one = g.apply(
        "slice", {x}, SliceOf{.dim = at, .begin = index < 0 ? index + extent : index, .length = 1});
    return g.apply("reshape", {one}, Reshape{Shape(extents)});
  }

  std::string torch(const Shape&) const { return PythonCall("Select").arg(dim).arg(index).str(); }
};

}  // namespace

LayerType select() {
  return layer_type<SelectLayer>("select", "Takes one index of a dimension: [N, L, E] to [N, E].");
}

}  // namespace dpt::layers
