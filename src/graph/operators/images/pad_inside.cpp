// pad_inside: adds elements around the extents of x[N, C, ...] that are copies of x's own
// (Pad::mode, graph/formulas/resample.h).
//   pad_inside_gradient(dy) -> dx: the sums of dy over the copies of each element
#include <algorithm>
#include <limits>

#include "graph/formulas/resample.h"
#include "graph/operators/images/copied_elements.h"

namespace dpt::operators {
namespace {

// The most elements that one side of an extent can have.
int64_t most_padding(Pad::Mode mode, int64_t extent) {
  if (mode == Pad::Mode::circular || extent == 0) return extent;
  return mode == Pad::Mode::reflect ? extent - 1 : std::numeric_limits<int32_t>::max();
}

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const Pad& pad) {
  need_image("pad_inside", in[0]);
  const Shape& x = in[0].shape;
  Shape y = x;
  for (int i = 0; i < x.rank(); ++i) {
    const auto d = static_cast<size_t>(i);
    const int64_t before = pad.before[d], behind = pad.behind[d];
    const int64_t most = i < 2 ? 0 : most_padding(pad.mode, x[i]);
    if (before < 0 || behind < 0 || before > most || behind > most)
      fail(Fault::spec, "pad_inside: {} before and {} after do not fit dimension {} of {}", before,
           behind, i, x.str());
    y = y.with(i, (Checked(x[i]) + before + behind).value());
  }
  return {{in[0].dtype, y}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const Pad& pad) {
  TensorDesc x = in[0];
  x.layout = Layout::plain;
  for (int i = 2; i < x.shape.rank(); ++i) {
    const auto d = static_cast<size_t>(i);
    x.shape = x.shape.with(i, std::max<int64_t>(0, x.shape[i] - pad.before[d] - pad.behind[d]));
  }
  require(infer(std::span(&x, 1), pad)[0].shape == in[0].shape, "dy is padded");
  return {x};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return {g.apply("pad_inside_gradient", {dy[0]}, n.attrs)};
}

Sources sources(const Shape& x, const Shape& y, const Pad& pad) {
  const Extents out = extents_of(y);
  Sources from;
  for (size_t i = 0; i < 3; ++i) from[i] = pad_sources(x, out[i], pad, i);
  return from;
}

void forward(const KernelArgs& args, const Pad& attrs) {
  copy_elements(args, sources(args.in[0].desc.shape, args.out[0].desc.shape, attrs));
}

void backward(const KernelArgs& args, const Pad& attrs) {
  sum_copies(args, sources(args.out[0].desc.shape, args.in[0].desc.shape, attrs));
}

std::string variant(const Pad& attrs) {
  const std::string_view names[] = {"reflect", "replicate", "circular"};
  return std::string(names[static_cast<size_t>(attrs.mode)]);
}

}  // namespace

Operators pad_inside() {
  return {{.name = "pad_inside",
           .precision = Precision::follow,
           .infer = typed<infer>,
           .gradient = gradient,
           .reference = typed<forward>,
           .layouts = Layouts::images,
           .traits = Trait::selects,
           .variant = typed<variant>},
          {.name = "pad_inside_gradient",
           .precision = Precision::follow,
           .infer = typed<infer_gradient>,
           .reference = typed<backward>,
           .flops = elements_of_first_input,
           .layouts = Layouts::images,
           .traits = Trait::backward,
           .variant = typed<variant>}};
}

}  // namespace dpt::operators
