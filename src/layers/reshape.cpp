// reshape: the same elements of each sample, in the same order, in another shape.
#include <algorithm>

#include <fmt/ranges.h>

#include "base/checked.h"
#include "base/fail.h"
#include "formats/python_call.h"
#include "graph/attrs.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

constexpr std::string_view kReshapeClass = R"py(class Reshape(nn.Module):
    """Gives each sample another shape."""

    def __init__(self, *shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return x.reshape(x.shape[0], *self.shape)
)py";

struct ReshapeLayer {
  static constexpr std::string_view kTorchClass = kReshapeClass;
  static constexpr Usage kUsage{"torch.reshape",
                                "- reshape: [1, 28, 28]\n"
                                "- reshape: {shape: [16, -1]}"};

  std::vector<int64_t> shape;

  static KeyTable<ReshapeLayer> keys() {
    return KeyTable<ReshapeLayer>().required(
        "shape", &ReshapeLayer::shape,
        "shape of a sample, without the batch; one extent may be -1, which is then inferred",
        Range{.text = "must be at least 1, or -1 for an extent that is inferred",
              .low = -1,
              .high = 2147483647.0});
  }

  static void check(const ReshapeLayer& r, const Owner& owner, Diagnostics& d) {
    if (std::ranges::find(r.shape, 0) != r.shape.end())
      d.error(owner.at("shape"), "'shape' must not have an extent of 0");
    else if (std::ranges::count(r.shape, -1) > 1)
      d.error(owner.at("shape"), "only one extent of 'shape' can be -1");
    else if (r.shape.size() >= static_cast<size_t>(Shape::kMaxRank))
      d.error(owner.at("shape"), fmt::format("'shape' can have at most {} extents, not {}",
                                             Shape::kMaxRank - 1, r.shape.size()));
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape from = g.shape(x);
    const int64_t all = from.tail(1).elements();
    std::vector<int64_t> extents = shape;
    Checked given = 1;
    for (const int64_t extent : shape)
      if (extent > 0) given = given * extent;
    const auto inferred = std::ranges::find(extents, -1);
    if (inferred == extents.end() ? given.value() != all : all % given.value() != 0)
      fail(Fault::spec, "reshape: a sample of {} has {} elements, which do not fit into shape [{}]",
           from.str(), all, fmt::join(shape, ", "));
    if (inferred != extents.end()) *inferred = all / given.value();
    extents.insert(extents.begin(), from[0]);
    const Shape to{std::span<const int64_t>(extents)};
    return to == from ? x : g.apply("reshape", {x}, Reshape{to});
  }

  std::string torch(const Shape&) const {
    PythonCall call("Reshape");
    for (const int64_t extent : shape) call.arg(extent);
    return call.str();
  }
};

}  // namespace

LayerType reshape() {
  return layer_type<ReshapeLayer>("reshape",
                                  "Gives each sample another shape: [N, 784] to [N, 1, 28, 28].");
}

}  // namespace dpt::layers
