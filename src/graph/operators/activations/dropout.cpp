// dropout: y = x / (1 - p) for kept elements, else 0. Which elements are kept is a function of the
// seed, the step, the layer and the element's index in the global batch (Note [randomness], Note
// [dropout's words]). The gradient therefore draws the same mask again: dx = dropout(dy). With
// Dropout::channels a channel has the word of one element, that with its number.
#include <algorithm>

#include "graph/formulas/philox.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Dropout& attrs) {
  need_real("dropout", in[0]);
  if (attrs.channels && in[0].shape.rank() < 3)
    fail(Fault::spec, "dropout: takes [N, C, ...] to drop channels, not {}", in[0].shape.str());
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("dropout_gradient", {dy[0]}, n.attrs)};
}

// In the type of x, as PyTorch: x * (1 / (1 - p)).
void reference(const KernelArgs& args, const Dropout& s) {
  require(args.context != nullptr, "dropout needs the step's context");
  const StepContext& c = *args.context;
  const philox::Key key = philox::layer_key(c.seed, s.key);
  const uint64_t keep = philox::keep_below(s.p);
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    const T scale = T{1} / static_cast<T>(1 - s.p);
    const auto rows = static_cast<size_t>(args.in[0].desc.shape[0]);
    const size_t width = x.size() / std::max<size_t>(1, rows);
    const auto together =
        s.channels ? static_cast<size_t>(args.in[0].desc.shape.tail(2).elements()) : size_t{1};
    bool kept = false;
    for (size_t i = 0; i < x.size(); ++i) {
      const uint64_t sample = static_cast<uint64_t>(c.first_sample) + i / width;
      if (i % together == 0)
        kept = philox::element_word(key, c.step, sample, i % width / together) < keep;
      y[i] = kept ? x[i] * scale : T{0};
    }
  });
}

std::string variant(const Dropout& attrs) { return attrs.channels ? "channels" : ""; }

}  // namespace

Operators dropout() {
  return {{.name = "dropout",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<reference>,
           .torch_order = TorchOrder::of_first,
           .traits = Trait::random,
           .variant = typed<variant>},
          {.name = "dropout_gradient",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .reference = typed<reference>,
           .traits = Trait::backward | Trait::random,
           .variant = typed<variant>}};
}

}  // namespace dpt::operators
