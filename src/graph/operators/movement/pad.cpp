// pad: adds elements of one value before and after each dimension, or removes elements where the
// amount is negative. The gradient is a pad with negated amounts and zeros.
#include <algorithm>

#include "base/checked.h"
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Pad& s) {
  need_real("pad", in[0]);
  Shape y = in[0].shape;
  for (int i = 0; i < y.rank(); ++i) {
    const auto d = static_cast<size_t>(i);
    const Checked cut = std::min(s.before[d], s.behind[d]);
    const int64_t extent = (Checked(y[i]) + s.before[d] + s.behind[d]).value();
    if (i == 0 ? extent != y[0] : extent < 0 || (cut + y[i]).value() < 0)
      fail(Fault::spec, "pad: {} before and {} after do not fit dimension {} of {}", s.before[d],
           s.behind[d], i, in[0].shape.str());
    y = y.with(i, extent);
  }
  return {{in[0].dtype, y}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  Pad s = settings<Pad>(n.attrs);
  for (auto* side : {&s.before, &s.behind})
    for (int64_t& amount : *side) amount = -amount;
  s.value = 0;
  return {g.apply("pad", {dy[0]}, s)};
}

void reference(const KernelArgs& args, const Pad& s) {
  const Shape &from = args.in[0].desc.shape, &to = args.out[0].desc.shape;
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    const auto read = strides_of(from, args.in[0].desc.layout);
    const auto write = strides_of(to, args.out[0].desc.layout);
    for (size_t e = 0; e < y.size(); ++e) {
      // Element e of y in row-major order, decomposed into coordinates from the last dimension on.
      auto rest = static_cast<int64_t>(e);
      int64_t source = 0, at = 0;
      bool inside = true;
      for (int i = to.rank(); i-- > 0;) {
        const auto d = static_cast<size_t>(i);
        const int64_t position = rest % to[i] - s.before[d];
        inside = inside && position >= 0 && position < from[i];
        source += position * read[d];
        at += rest % to[i] * write[d];
        rest /= to[i];
      }
      y[static_cast<size_t>(at)] =
          inside ? x[static_cast<size_t>(source)] : static_cast<T>(s.value);
    }
  });
}

}  // namespace

Operators pad() {
  return {{.name = "pad",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<reference>,
           .layouts = Layouts::images}};
}

}  // namespace dpt::operators
