#include "graph/samples/samples.h"
#include "graph/windows.h"

namespace dpt {
namespace {

// Products with a weight [out, in], and those that the fusion of linear and relu makes of them.
Samples linear(std::string_view op) {
  return {sample(op, {f32({3, 5}), f32({2, 5})}), sample(op, {f32({3, 5}), f32({2, 5}), f32({2})}),
          sample(op, {f32({1, 1}), f32({1, 1}), f32({1})}),
          sample(op, {f32({2, 3, 7}), f32({9, 7}), f32({9})}),
          sample(op, {f32({17, 33}), f32({19, 33}), f32({19})})};
}

Samples matmul() {
  Samples out = {
      sample("matmul", {f32({3, 2}), f32({2, 5})}),
      sample("matmul", {f32({3, 2}), f32({2, 5}), f32({5})}),
      sample("matmul", {f32({2, 3, 9}), f32({9, 7})}),
      sample("matmul", {f32({17, 19}), f32({19, 33}), f32({33})}),
  };
  for (const Shape& y : {Shape{3, 5}, Shape{2, 3, 9}, Shape{17, 130}}) {
    const TensorDesc mask =
        sample("linear_relu_mask", {f32(y), f32({y.back(), y.back()})}).query.out[1];
    out.push_back(sample("matmul_relu_gradient",
                         {f32(y.with(y.rank() - 1, 33)), f32({33, y.back()}), f32(y), mask},
                         ReluMask{.depth = y.back(), .bias = false}, {{}, {}, {}, {0, 256}}));
  }
  return out;
}

// Gradients of weights, which the fusion with those of biases joins, and sums of other shapes than
// those of the products above.
Samples gradients_of_weights() {
  Samples out;
  for (const std::string_view op : {"linear_weight_gradient", "linear_weight_bias_gradient"}) {
    out.push_back(sample(op, {f32({3, 2}), f32({3, 5})}));
    out.push_back(sample(op, {f32({2, 3, 9}), f32({2, 3, 7})}));
    out.push_back(sample(op, {f32({17, 19}), f32({17, 33})}));
  }
  for (const Shape& s : {Shape{3, 2, 5, 4}, Shape{2, 19, 7}, Shape{17, 33}})
    out.push_back(sample("sum_channels", {f32(s)}));
  out.push_back(sample("sum_rows", {f32({17, 33})}));
  return out;
}

struct Convolved {
  Shape x, w;
  Convolution by;
};
const std::vector<Convolved>& convolved() {
  static const std::vector<Convolved> all = {
      {{2, 3, 5, 4}, {4, 3, 3, 3}, {{.kernel = {1, 3, 3}}}},
      {{1, 1, 1, 1}, {1, 1, 1, 1}, {{.kernel = {1, 1, 1}}}},
      {{2, 33, 3, 2}, {37, 33, 1, 1}, {{.kernel = {1, 1, 1}}}},
      {{2, 4, 7, 6},
       {6, 2, 3, 2},
       {{.kernel = {1, 3, 2}, .stride = {1, 2, 2}, .before = {0, 1, 1}, .behind = {0, 1, 1}}, 2}},
      {{1, 3, 6, 7},
       {3, 1, 2, 3},
       {{.kernel = {1, 2, 3}, .dilation = {1, 1, 2}, .before = {0, 0, 2}, .behind = {0, 1, 2}}, 3}},
      {{2, 2, 8, 9},
       {5, 2, 3, 3},
       {{.kernel = {1, 3, 3}, .stride = {1, 3, 2}, .dilation = {1, 2, 2}, .behind = {0, 0, 1}}}},
      {{3, 2, 9},
       {4, 2, 3},
       {{.kernel = {1, 1, 3}, .stride = {1, 1, 2}, .before = {0, 0, 1}, .behind = {0, 0, 1}}}},
      {{2, 4, 6}, {4, 1, 4}, {{.kernel = {1, 1, 4}}, 4}},
      {{2, 3, 4, 3, 5}, {5, 3, 3, 2, 3}, {{.kernel = {3, 2, 3}, .before = {1, 0, 1}}}},
      {{1, 4, 7, 3, 6},
       {6, 2, 2, 1, 3},
       {{.kernel = {2, 1, 3},
         .stride = {2, 1, 3},
         .dilation = {3, 1, 1},
         .before = {1, 0, 1},
         .behind = {2, 0, 1}},
        2}},
  };
  return all;
}

Samples convolution(std::string_view op) {
  Samples out;
  for (const Convolved& c : convolved()) {
    out.push_back(sample(op, {f32(c.x), f32(c.w)}, c.by));
    out.push_back(sample(op, {f32(c.x), f32(c.w), f32({c.w[0]})}, c.by));
  }
  return out;
}

// Without a bias it is the gradient of the convolutions above.
Samples transpose() {
  Samples out;
  for (const Sample& s : convolution("convolution")) {
    if (s.query.in.size() < 3) continue;
    Convolution by = std::any_cast<const Convolution&>(s.query.attrs);
    const Window& k = by.window;
    const Shape& x = s.query.in[0].shape;
    for (size_t i = 0; i < 3; ++i)
      by.output_padding[i] = (padded(k, i, extents_of(x)[i]) - covered(k, i)) % k.stride[i];
    out.push_back(
        sample("convolution_transpose", {s.query.out[0], s.query.in[1], f32({x[1]})}, by));
  }
  const Window apart{.kernel = {1, 1, 3}, .stride = {1, 1, 2}, .dilation = {1, 1, 4}};
  out.push_back(sample("convolution_transpose", {f32({2, 3, 4}), f32({3, 2, 3})},
                       Convolution{.window = apart, .groups = 1, .output_padding = {0, 0, 3}}));
  return out;
}

Samples attention() {
  const auto of = [](Shape qkv, Attention attrs) { return sample("attention", {f32(qkv)}, attrs); };
  return {of({2, 3, 12}, {.heads = 2}), of({2, 5, 6}, {.heads = 1, .causal = true}),
          of({1, 1, 9}, {.heads = 3}),  of({2, 1, 3}, {.heads = 1, .causal = true}),
          of({1, 9, 27}, {.heads = 1}), of({1, 17, 24}, {.heads = 2, .causal = true})};
}

}  // namespace

Samples product_samples() {
  Samples out;
  for (const std::string_view op : {"linear", "linear_relu", "linear_relu_mask"}) out += linear(op);
  out += matmul();
  out += gradients_of_weights();
  for (const std::string_view op : {"convolution", "convolution_relu"}) out += convolution(op);
  out += transpose();
  return out += attention();
}

}  // namespace dpt
