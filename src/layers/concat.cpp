// concat: torch.cat, [N, A, ...] and [N, B, ...] -> [N, A + B, ...]. It takes its inputs from
// `from`.
#include "base/fail.h"
#include "graph/attrs.h"
#include "layers/dimension.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct ConcatLayer {
  static constexpr Usage kUsage{"torch.cat",
                                "- concat: {dim: 1}\n"
                                "  from: [left, right]"};

  int64_t dim = 1;

  static KeyTable<ConcatLayer> keys() {
    return KeyTable<ConcatLayer>().optional("dim", &ConcatLayer::dim,
                                            "dimension along which to concatenate");
  }

  ValueId build(GraphBuilder& g, std::span<const ValueId> x) const {
    if (x.size() < 2) fail(Fault::spec, "concat takes several values: write from: [a, b]");
    const Shape first = g.shape(x[0]);
    const int at = sample_dimension("concat", "dim", dim, first);
    for (ValueId v : x.subspan(1)) {
      const Shape other = g.shape(v);
      if (other.rank() != first.rank() || other.with(at, first[at]) != first)
        fail(Fault::spec, "concat: {} and {} differ in more than extent {}", first.str(),
             other.str(), at);
    }
    return g.apply("concat", {x.begin(), x.end()}, Concat{at});
  }
  std::string torch(const Shape&) const { return fmt::format("torch.cat(x, dim={})", dim); }
};

}  // namespace

LayerType concat() {
  return layer_type<ConcatLayer>("concat", "Concatenates the outputs of several entries.");
}

}  // namespace dpt::layers
