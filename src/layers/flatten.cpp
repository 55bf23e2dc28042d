// flatten: joins dimensions start_dim to end_dim into one; by default all of a sample's, [N, ...]
// -> [N, F].
#include "base/fail.h"
#include "graph/attrs.h"
#include "layers/dimension.h"
#include "layers/layer.h"

namespace dpt::layers {
namespace {

struct Flatten {
  static constexpr Usage kUsage{"torch.nn.Flatten",
                                "- flatten\n"
                                "- flatten: {start_dim: 2, end_dim: -1}"};

  int64_t start_dim = 1, end_dim = -1;

  static KeyTable<Flatten> keys() {
    return KeyTable<Flatten>()
        .optional("start_dim", &Flatten::start_dim, "first dimension to merge; 0 is the batch")
        .optional("end_dim", &Flatten::end_dim, "last dimension to merge; -1: the last one");
  }

  ValueId build(GraphBuilder& g, ValueId x) const {
    const Shape shape = g.shape(x);
    const int first = sample_dimension("flatten", "start_dim", start_dim, shape);
    const int last = sample_dimension("flatten", "end_dim", end_dim, shape);
    if (first > last)
      fail(Fault::spec, "flatten: start_dim {} comes after end_dim {} for an input of {}",
           start_dim, end_dim, shape.str());
    if (first == last) return x;
    std::vector<int64_t> extents;
    int64_t together = 1;
    for (int i = 0; i < shape.rank(); ++i) {
      if (i >= first && i <= last) together *= shape[i];
      if (i == last)
        extents.push_back(together);
      else if (i < first || i > last)
        extents.push_back(shape[i]);
    }
    return g.apply("reshape", {x}, Reshape{Shape(extents)});
  }
};

}  // namespace

LayerType flatten() {
  return layer_type<Flatten>("flatten", "Merges dimensions into one: [N, 1, 28, 28] to [N, 784].");
}

}  // namespace dpt::layers
