// pad_inside: adds rows and columns around x[N, C, H, W] that are copies of x's own (Pad::mode,
// graph/formulas/resample.h).
//   pad_inside_gradient(dy) -> dx: the sums of dy over the copies of each element
#include <algorithm>
#include <limits>

#include "graph/formulas/resample.h"
#include "graph/operators/images/image.h"

namespace dpt::operators {
namespace {

// The padding of one extent.
struct Sides {
  int64_t before, behind;
};
// First of the height, then of the width.
std::array<Sides, 2> sides(const Shape& s, const Pad& pad) {
  std::array<Sides, 2> out{};
  for (int d = 2; d < s.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    out[i + 2 - static_cast<size_t>(s.rank())] = {pad.before[i], pad.behind[i]};
  }
  return out;
}

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

// Calls f(offset in x, offset in y) for each element of y.
template <class F>
void each_copy(const TensorDesc& x, const TensorDesc& y, const Pad& pad, F f) {
  const Image from(x), to(y);
  const auto [rows, columns] = sides(x.shape, pad);
  const auto mode = static_cast<formula::PadFrom>(pad.mode);
  std::vector<int64_t> row, column;
  for (int64_t i = 0; i < to.h; ++i)
    row.push_back(formula::pad_source(mode, i - rows.before, from.h));
  for (int64_t i = 0; i < to.w; ++i)
    column.push_back(formula::pad_source(mode, i - columns.before, from.w));
  to.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
    f(from.at(n, c, row[static_cast<size_t>(h)], column[static_cast<size_t>(w)]),
      to.at(n, c, h, w));
  });
}

void forward(const KernelArgs& args, const Pad& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    each_copy(args.in[0].desc, args.out[0].desc, attrs, [&](size_t i, size_t k) { y[k] = x[i]; });
  });
}

void backward(const KernelArgs& args, const Pad& attrs) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    std::vector<double> dx(static_cast<size_t>(args.out[0].desc.shape.elements()));
    each_copy(args.out[0].desc, args.in[0].desc, attrs,
              [&](size_t i, size_t k) { dx[i] += static_cast<double>(dy[k]); });
    store(dx, args.out[0].as<T>());
  });
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
