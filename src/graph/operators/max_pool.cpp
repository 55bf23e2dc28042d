// max_pool: y[N, C, H', W'] = the largest element of each window of x[N, C, H, W]; padding is never
// the largest, nan always is. Results: y, and i32 where it lies in its plane, h * W + w, the first
// where several are equal.
//   max_pool_gradient(dy, places) -> dx
#include <cmath>
#include <limits>

#include "graph/operators/image.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any& attrs) {
  const auto& s = settings<Pool>(attrs);
  need_image("max_pool", in[0]);
  const Shape& x = in[0].shape;
  const Shape y = image_shape(x, x[1], places("max_pool", x, s.window, s.ceil_mode));
  return {{in[0].dtype, y}, {DType::i32, y}};
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any& attrs) {
  require(in[0].shape == in[1].shape, "max_pool_gradient: dy has a place for each element");
  const Shape& dy = in[0].shape;
  return {{in[0].dtype, image_shape(dy, dy[1], settings<Pool>(attrs).extents)}};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  Pool s = settings<Pool>(n.attrs);
  s.extents = Image(g.shape(n.in[0])).extents();
  return {g.apply("max_pool_gradient", {dy[0], n.out[1]}, s)};
}

void forward(const KernelArgs& args, const std::any& attrs) {
  const Window& k = settings<Pool>(attrs).window;
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto x = args.in[0].as<const T>();
    const auto y = args.out[0].as<T>();
    const auto place = args.out[1].as<int32_t>();
    const Image from(args.in[0]), to(args.out[0]);
    to.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      const Span1 rows = inside(k, 0, h, from.h), columns = inside(k, 1, w, from.w);
      T best = -std::numeric_limits<T>::infinity();
      int64_t at = rows.first * from.w + columns.first;
      for (int64_t i = rows.first; i < rows.last; i += k.dilation[0])
        for (int64_t j = columns.first; j < columns.last; j += k.dilation[1])
          if (const T v = x[from.at(n, c, i, j)]; v > best || std::isnan(v)) {
            best = v;
            at = i * from.w + j;
          }
      y[to.at(n, c, h, w)] = best;
      place[to.at(n, c, h, w)] = static_cast<int32_t>(at);
    });
  });
}

void backward(const KernelArgs& args, const std::any&) {
  with_type_of(args.in[0], [&]<class T>(T) {
    const auto dy = args.in[0].as<const T>();
    const auto place = args.in[1].as<const int32_t>();
    const Image from(args.in[0]), to(args.out[0]);
    std::vector<double> sums(static_cast<size_t>(args.out[0].desc.shape.elements()));
    from.each([&](int64_t n, int64_t c, int64_t h, int64_t w) {
      const size_t at = from.at(n, c, h, w);
      sums[to.at(n, c, place[at] / to.w, place[at] % to.w)] += static_cast<double>(dy[at]);
    });
    store(sums, args.out[0].as<T>());
  });
}

struct Case {
  Shape x, y;
  Pool s;
};

std::vector<Case> cases() {
  return {
      {{2, 3, 4, 6}, {2, 3, 2, 3}, {{.kernel = {2, 2}, .stride = {2, 2}}}},
      {{2, 17, 5, 5},
       {2, 17, 3, 3},
       {{.kernel = {3, 3}, .stride = {2, 2}, .before = {1, 1}, .behind = {1, 1}}}},
      {{1, 2, 7, 8},
       {1, 2, 2, 4},
       {{.kernel = {2, 3},
         .stride = {3, 2},
         .dilation = {3, 1},
         .before = {0, 1},
         .behind = {0, 1}}}},
      {{2, 2, 6, 7}, {2, 2, 3, 4}, {{.kernel = {3, 2}, .stride = {2, 2}}, true}},
      {{2, 3, 9},
       {2, 3, 5},
       {{.kernel = {1, 2}, .stride = {1, 2}, .before = {0, 1}, .behind = {0, 1}}}},
  };
}

// Far apart, so that differences of 1e-6 change no choice.
std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const Case& c : cases())
    out.push_back({{"max_pool", {f32(c.x)}, {f32(c.y), i32(c.y)}, c.s}, {{-10, 10}}});
  return out;
}

std::vector<Sample> gradient_samples() {
  std::vector<Sample> out;
  for (Case c : cases()) {
    c.s.extents = Image(c.x).extents();
    const auto area = static_cast<double>(c.s.extents[0] * c.s.extents[1]);
    out.push_back({{"max_pool_gradient", {f32(c.y), i32(c.y)}, {f32(c.x)}, c.s}, {{}, {0, area}}});
  }
  return out;
}

}  // namespace

OperatorType max_pool() {
  return selecting(on_images(
      {"max_pool", Precision::follow, infer, gradient, forward, samples, elements_of_first_input}));
}

OperatorType max_pool_gradient() {
  return on_images({"max_pool_gradient", Precision::follow, infer_gradient, nullptr, backward,
                    gradient_samples, elements_of_first_input});
}

}  // namespace dpt::operators
