#include "graph/attrs.h"
#include "graph/samples/samples.h"

namespace dpt {
namespace {

Samples sums() {
  Samples out = elementwise_samples("multiply", 2);
  for (const Shape& s : {Shape{3, 5}, Shape{2, 3, 7}})
    for (const size_t inputs : {2UL, 3UL, 5UL})
      out.push_back(sample("add", std::vector(inputs, f32(s))));
  return out += elementwise_samples("copy", 1, Copy{0, 1});
}

Samples casts() {
  Samples out;
  for (const Shape& s : {Shape{3, 5}, Shape{1, 33}, Shape{2, 3, 7}})
    for (const DType half : {DType::bf16, DType::f16}) {
      out.push_back(sample("cast", {f32(s)}, Cast{half}));
      out.push_back(sample("cast", {{half, s}}, Cast{DType::f32}));
    }
  out += elementwise_samples("round_to", 1, Cast{DType::bf16}, {-300, 300});
  out += elementwise_samples("round_to", 1, Cast{DType::f16}, {-60000, 60000});
  // Scale 1 only: otherwise the gradient would not be that of the identity, and gradient checks
  // fail.
  for (const std::string_view op : {"scale_gradient", "scale"})
    for (const Shape& s : {Shape{3, 5}, Shape{1, 33}})
      out.push_back(sample(op, {f32(s), f32({1})}, {}, {{-2, 2}, {1, 1}}));
  return out;
}

Samples masks() {
  Samples out;
  for (const DType mask : {DType::u8, DType::f32})
    for (const Shape& s : {Shape{3, 5}, Shape{2, 3, 17}})
      out.push_back(sample("masked", {f32(s), {mask, s}}, Masked{.scale = 2}, {{}, {0, 2}}));
  for (const Shape& s : {Shape{3, 5, 7}, Shape{2, 3, 4, 17}})
    out.push_back(
        sample("masked_channels", {f32(s), f32({s[0], s[1]})}, Masked{.scale = 2}, {{}, {0, 2}}));
  return out;
}

Samples parts() {
  const auto slice = [](Shape x, SliceOf of) { return sample("slice", {f32(x)}, of); };
  const auto pad = [](Shape x, Pad by) { return sample("pad", {f32(x)}, by); };
  return {
      sample("concat", {f32({3, 5}), f32({3, 2})}, Concat{1}),
      sample("concat", {f32({2, 1, 3}), f32({2, 4, 3}), f32({2, 2, 3})}, Concat{1}),
      sample("concat", {f32({2, 3, 1}), f32({2, 3, 17})}, Concat{2}),
      slice({3, 5}, {.dim = 1, .begin = 1, .length = 2}),
      slice({2, 7, 3}, {.dim = 1, .begin = 3, .length = 4}),
      slice({2, 3, 18}, {.dim = 2, .begin = 0, .length = 1}),
      pad({2, 3, 4, 5}, {.before = {0, 0, 1, 0}, .behind = {0, 0, 2, 1}, .value = 0.5}),
      pad({2, 3, 4, 5}, {{0, 0, -1, 2}, {0, 1, -1, -1}}),
      pad({3, 9}, {.before = {0, 8}, .behind = {}, .value = -1}),
      pad({2, 3, 7}, {}),
  };
}

Samples orders() {
  const auto permute = [](Shape x, Permute to) { return sample("permute", {f32(x)}, to); };
  Samples out = {
      sample("reshape", {f32({2, 3, 4})}, Reshape{{2, 12}}),
      sample("reshape", {f32({6})}, Reshape{{6, 1}}),
      sample("reshape", {i32({3, 1})}, Reshape{{3}}),
      permute({2, 3, 5}, {{0, 2, 1}}),
      permute({2, 3, 4, 5}, {{0, 2, 3, 1}}),
      permute({1, 2, 3, 4, 5, 7}, {{0, 1, 4, 2, 5, 3}}),
      permute({3, 33}, {}),
  };
  for (const Shape& s : {Shape{2, 3, 4, 5}, Shape{1, 17, 33}, Shape{3, 19, 7, 1}}) {
    out.push_back(sample("reorder", {f32(s)}, Reorder{Layout::channels_last}));
    out.push_back(
        sample("reorder", {{DType::f32, s, Layout::channels_last}}, Reorder{Layout::plain}));
  }
  return out;
}

Samples embeddings() {
  const auto rows = [](Shape indices, Shape table, int64_t padding_idx, double last) {
    return sample("embedding", {i32(indices), f32(table)}, Embedding{.padding_idx = padding_idx},
                  {{0, last}});
  };
  const int64_t none = Embedding{}.padding_idx;
  Samples out = {
      rows({4}, {3, 2}, none, 3),
      rows({4, 5}, {7, 10}, 6, 6),
      rows({2, 3, 2}, {4, 33}, none, 4),
      // With indices of the padding.
      sample("embedding_gradient", {f32({4, 5, 10}), i32({4, 5})},
             Embedding{.padding_idx = 2, .rows = 7}, {{}, {0, 7}}),
  };
  const auto positions = [&](Shape x, int64_t table) {
    out.push_back(sample("position_embedding", {f32(x), f32({table, x[2]})}));
  };
  positions({3, 2, 5}, 2);
  positions({1, 4, 3}, 7);
  positions({5, 7, 17}, 7);
  positions({33, 1, 4}, 3);
  return out;
}

}  // namespace

Samples movement_samples() {
  Samples out = sums();
  out += casts();
  out += masks();
  out += parts();
  out += orders();
  return out += embeddings();
}

}  // namespace dpt
