// slice: elements begin .. begin + length - 1 of one dimension.
//   slice_gradient(dy) -> dx: dy at these elements, zeros elsewhere
#include "graph/operators/support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  const auto& s = settings<SliceOf>(attrs);
  need_dim("slice", in[0], s.dim);
  if (s.begin < 0 || s.length < 0 || s.begin + s.length > in[0].shape[s.dim])
    fail(Fault::spec, "slice: {} has no extents {} to {} in dimension {}", in[0].shape.str(),
         s.begin, s.begin + s.length, s.dim);
  return {{in[0].dtype, in[0].shape.with(s.dim, s.length)}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any& attrs) {
  const auto& s = settings<SliceOf>(attrs);
  require(in[0].shape[s.dim] == s.length && s.begin + s.length <= s.extent,
          "slice_gradient: dy is the slice");
  return {{in[0].dtype, in[0].shape.with(s.dim, s.extent)}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  SliceOf s = settings<SliceOf>(n.attrs);
  s.extent = g.shape(n.in[0])[s.dim];
  return {g.apply("slice_gradient", {dy[0]}, s)};
}

void forward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<SliceOf>(attrs);
  const Along a = along(args.in[0].desc.shape, s.dim);
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    for (int64_t o = 0; o < a.outer; ++o)
      for (int64_t i = 0; i < s.length * a.inner; ++i)
        y[static_cast<size_t>(o * s.length * a.inner + i)] =
            x[static_cast<size_t>((o * a.extent + s.begin) * a.inner + i)];
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<SliceOf>(attrs);
  const Along a = along(args.out[0].desc.shape, s.dim);
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    const auto dx = args.out[0].as<T>();
    for (T& d : dx) d = 0;
    for (int64_t o = 0; o < a.outer; ++o)
      for (int64_t i = 0; i < s.length * a.inner; ++i)
        dx[static_cast<size_t>((o * a.extent + s.begin) * a.inner + i)] =
            dy[static_cast<size_t>(o * s.length * a.inner + i)];
  });
}

std::vector<Sample> samples() {
  return {
      {{"slice", {f32({3, 5})}, {f32({3, 2})}, SliceOf{.dim = 1, .begin = 1, .length = 2}}},
      {{"slice", {f32({2, 7, 3})}, {f32({2, 4, 3})}, SliceOf{.dim = 1, .begin = 3, .length = 4}}},
      {{"slice", {f32({2, 3, 18})}, {f32({2, 3, 1})}, SliceOf{.dim = 2, .begin = 0, .length = 1}}},
  };
}

std::vector<Sample> gradient_samples() {
  return {
      {{"slice_gradient",
        {f32({3, 2})},
        {f32({3, 5})},
        SliceOf{.dim = 1, .begin = 1, .length = 2, .extent = 5}}},
      {{"slice_gradient",
        {f32({2, 4, 3})},
        {f32({2, 7, 3})},
        SliceOf{.dim = 1, .begin = 3, .length = 4, .extent = 7}}},
      {{"slice_gradient",
        {f32({2, 3, 1})},
        {f32({2, 3, 18})},
        SliceOf{.dim = 2, .begin = 0, .length = 1, .extent = 18}}},
  };
}

}  // namespace

OperatorType slice() {
  return selecting({.name = "slice",
                    .precision = Precision::follow,
                    .infer = infer,
                    .gradient = gradient,
                    .reference = forward,
                    .samples = samples});
}

OperatorType slice_gradient() {
  return selecting({.name = "slice_gradient",
                    .precision = Precision::follow,
                    .infer = infer_gradient,
                    .reference = backward,
                    .samples = gradient_samples,
                    .backward = true});
}

}  // namespace dpt::operators
