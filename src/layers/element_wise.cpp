// add and multiply: the sum or the product of several values of one shape, from left to right,
// which they take from `from`.
#include "base/fail.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct ElementWiseNames {
  std::string_view layer, torch;
  Usage usage;
};

template <const ElementWiseNames& kNames>
struct ElementWise {
  static constexpr Usage kUsage = kNames.usage;
  static KeyTable<ElementWise> keys() { return {}; }

  ValueId build(GraphBuilder& g, std::span<const ValueId> x) const {
    if (x.size() < 2)
      fail(Fault::spec, "{} takes several values: write from: [a, b]", kNames.layer);
    ValueId y = x[0];
    for (ValueId v : x.subspan(1)) {
      if (g.shape(v) != g.shape(y))
        fail(Fault::spec, "{}: {} and {} are not the same shape", kNames.layer, g.shape(y).str(),
             g.shape(v).str());
      y = g.apply(kNames.layer, {y, v});
    }
    return y;
  }
  std::string torch(const Shape&) const { return std::string(kNames.torch); }
};

constexpr ElementWiseNames kAdd{"add",
                                "sum(x)",
                                {"torch.add",
                                 "- add:\n"
                                 "  from: [left, right]"}};
constexpr ElementWiseNames kMultiply{"multiply",
                                     "math.prod(x)",
                                     {"torch.mul",
                                      "- multiply:\n"
                                      "  from: [left, right]"}};

}  // namespace

std::vector<LayerType> element_wise() {
  return {layer_type<ElementWise<kAdd>>(
              kAdd.layer, "Adds the outputs of several entries, which must have the same shape."),
          layer_type<ElementWise<kMultiply>>(
              kMultiply.layer,
              "Multiplies the outputs of several entries, which must have the same shape.")};
}

}  // namespace dpt::layers
