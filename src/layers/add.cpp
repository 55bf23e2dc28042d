// add: the sum of several values of one shape, from left to right. It takes them from `from`.
#include "base/fail.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Add {
  static constexpr Usage kUsage{"torch.add",
                                "- add:\n"
                                "  from: [left, right]"};
  static KeyTable<Add> keys() { return {}; }

  ValueId build(GraphBuilder& g, std::span<const ValueId> x) const {
    if (x.size() < 2) fail(Fault::spec, "add takes several values: write from: [a, b]");
    ValueId sum = x[0];
    for (ValueId v : x.subspan(1)) {
      if (g.shape(v) != g.shape(sum))
        fail(Fault::spec, "add: {} and {} are not the same shape", g.shape(sum).str(),
             g.shape(v).str());
      sum = g.apply("add", {sum, v});
    }
    return sum;
  }
};

}  // namespace

LayerType add() {
  return {registry_entry<Add>(
              "add", "Adds the outputs of several entries, which must have the same shape."),
          [](const std::any& settings, GraphBuilder& g, std::span<const ValueId> x) {
            return std::any_cast<const Add&>(settings).build(g, x);
          },
          true, [](const std::any&, const Shape&) -> std::string { return "sum(x)"; }};
}

}  // namespace dpt::layers
