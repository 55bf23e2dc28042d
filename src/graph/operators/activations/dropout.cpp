// dropout: y = x / (1 - p) for kept elements, else 0. Which elements are kept is a function of the
// seed, the step, the layer and the element's index in the global batch (Note [randomness], Note
// [dropout's words]). The gradient therefore draws the same mask again: dx = dropout(dy). With
// Dropout::channels a channel has the word of one element, that with its number.
#include <algorithm>

#include "graph/formulas/philox.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  need_real("dropout", in[0]);
  if (settings<Dropout>(attrs).channels && in[0].shape.rank() < 3)
    fail(Fault::spec, "dropout: takes [N, C, ...] to drop channels, not {}", in[0].shape.str());
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("dropout_gradient", {dy[0]}, n.attrs)};
}

// In the type of x, as PyTorch: x * (1 / (1 - p)).
void reference(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<Dropout>(attrs);
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

std::vector<Sample> samples_of(std::string_view op) {
  std::vector<Sample> out;
  for (const Shape& s : {Shape{3, 5}, Shape{2, 200}, Shape{2, 3, 67}})
    for (double p : {0.5, 0.1})
      out.push_back({{op, {f32(s)}, {f32(s)}, Dropout{.p = p, .key = 7}}});
  out.push_back({{op, {f32({3, 5})}, {f32({3, 5})}, Dropout{.p = 0, .key = 7}}});
  out.push_back({{op, {f32({3, 5})}, {f32({3, 5})}, Dropout{.p = 1, .key = 7}}});
  for (const Shape& s : {Shape{2, 5, 7}, Shape{2, 67, 3, 2}})
    out.push_back({{op, {f32(s)}, {f32(s)}, Dropout{.p = 0.3, .key = 7, .channels = true}}});
  return out;
}

std::string variant(const std::any& attrs) {
  return settings<Dropout>(attrs).channels ? "channels" : "";
}

}  // namespace

OperatorType dropout() {
  return {.name = "dropout",
          .precision = Precision::follow,
          .infer = infer,
          .gradient = gradient,
          .reference = reference,
          .samples = [] { return samples_of("dropout"); },
          .variant = variant,
          .random = true,
          .keeps_order = true};
}

OperatorType dropout_gradient() {
  return {.name = "dropout_gradient",
          .precision = Precision::follow,
          .infer = infer,
          .reference = reference,
          .samples = [] { return samples_of("dropout_gradient"); },
          .variant = variant,
          .backward = true,
          .random = true};
}

}  // namespace dpt::operators
