#include "graph/attrs.h"
#include "graph/samples/samples.h"

namespace dpt {
namespace {

// Of moments, sums and running variances: rstd and counts must be positive.
constexpr Sample::Range kPositive{0.5, 2};

// What a batch norm may do besides (graph/attrs.h), apart from `training`.
constexpr BatchNorm kVariants[] = {{}, {.relu = true}, {.add = true, .relu = true}};

const std::vector<Shape>& images() {
  static const std::vector<Shape> all = {{3, 2}, {2, 17, 5}, {3, 16, 2, 3}};
  return all;
}

// With given moments, and 0 to 2 weights. They are constant: if they depend on x, gradient checks
// of this operator alone do not apply, and the tests of the layer cover that case.
void add_given(std::string_view op, size_t images_of_it, const BatchNorm& attrs, Samples& out) {
  std::vector<Sample::Range> ranges(images_of_it);
  ranges.push_back(kPositive);
  for (const Shape& s : images()) {
    std::vector<TensorDesc> in(images_of_it, f32(s));
    in.push_back(f64({2 * s[1]}));
    for (int weights = 0; weights <= 2; ++weights, in.push_back(f32({s[1]})))
      out.push_back(sample(op, in, attrs, ranges));
  }
}

void add_training(BatchNorm s, const Shape& x, Samples& out) {
  s.training = true;
  s.eps = 0.01;
  for (size_t affine = 0; affine <= 2; ++affine)
    for (const double momentum : {0.1, -1.0, 0.0}) {  // 0: without running statistics
      s.momentum = momentum;
      std::vector<TensorDesc> in(s.add ? 2 : 1, f32(x));
      in.insert(in.end(), affine, f32({x[1]}));
      std::vector<Sample::Range> ranges;
      if (momentum != 0) {
        ranges.resize(in.size());
        ranges.insert(ranges.end(), {{}, kPositive, {0, 9}});
        const TensorDesc running[] = {f32({x[1]}), f32({x[1]}), {DType::i64, {}}};
        in.insert(in.end(), std::begin(running), std::end(running));
      }
      out.push_back(sample("batch_norm", std::move(in), s, std::move(ranges)));
    }
}

Samples batch_norm() {
  Samples out;
  for (BatchNorm s : kVariants) {
    for (const Shape& x : images()) add_training(s, x, out);
    add_training(s, {2, 3, 2, 1, 3}, out);
    s.batch = false;
    add_given("batch_norm", s.add ? 2 : 1, s, out);
  }
  return out;
}

// Those of batch norms that fusions make: two gradients of a result, and all of it in one pass.
Samples fused_gradients() {
  Samples out;
  for (const Shape& s : images()) {
    const TensorDesc x = f32(s), moments = f64({2 * s[1]}), w = f32({s[1]});
    const std::vector<Sample::Range> ranges = {{}, {}, kPositive};
    out.push_back(sample("batch_norm_sums", {x, x, moments, x, x},
                         BatchNorm{.add = true, .relu = true}, ranges));
    for (const BatchNorm& a : kVariants)
      for (size_t gradients = 1; gradients <= (a.add ? 2U : 1U); ++gradients) {
        std::vector<TensorDesc> in = {x, x, moments, w};
        if (a.relu) in.insert(in.end(), gradients, x);
        out.push_back(sample("batch_norm_backward", std::move(in), a, ranges));
      }
  }
  return out;
}

// With sums of the batch, which all_reduce gives.
void add_input_gradients(Samples& out) {
  for (const Shape& s : images())
    for (const bool relu : {false, true})
      for (size_t n = 0; n <= (relu ? 2U : 1U); ++n) {
        std::vector<TensorDesc> in = {f32(s), f32(s), f64({2 * s[1]}), f64({2 * s[1] + 1})};
        in.insert(in.end(), n, f32({s[1]}));
        out.push_back(sample("batch_norm_input_gradient", std::move(in), BatchNorm{.relu = relu},
                             {{}, {}, kPositive, kPositive}));
      }
}

Samples statistics() {
  const TensorDesc mean = f32({3}), seen{DType::i64, {}};
  const std::vector<Sample::Range> ranges = {{2, 4}, {}, kPositive, {0, 9}, {2, 4}};
  const std::vector<Sample::Range> four(ranges.begin(), ranges.begin() + 4);
  Samples out = {
      sample("all_reduce", {f64({5})}),
      sample("moments", {f64({7})}, {}, {kPositive}),
      sample("moments", {f64({7})}, BatchNorm{.eps = 0.1}, {kPositive}),
      sample("running_moments", {mean, mean}, BatchNorm{.eps = 0.1}, {{}, kPositive}),
      sample("update_running", {f64({7}), mean, mean, seen}, {}, four),
      sample("update_running", {f64({7}), mean, mean, seen}, BatchNorm{.momentum = -1}, four),
      sample("update_running", {f64({7}), mean, mean, seen, f64({7})}, {}, ranges)};
  for (const Shape& s : images()) out.push_back(sample("channel_sums", {f32(s)}));
  return out;
}

// With 0 to 2 weights, and the fusion of the gradients with a weight.
void add_row_norm(std::string_view op, std::string_view backward, const Shape& x, RowNorm s,
                  Samples& out) {
  s.eps = 1e-3;
  const TensorDesc w = f32(s.groups > 0 ? Shape{x[1]} : x.tail(x.rank() - s.dims));
  std::vector<TensorDesc> in = {f32(x)};
  for (int weights = 0; weights <= (s.center ? 2 : 1); ++weights, in.push_back(w))
    out.push_back(sample(op, in, s));
  const std::vector<TensorDesc> made = out.back().query.out;
  if (!backward.empty())
    out.push_back(
        sample(backward, {f32(x), f32(x), made[1], made[2], w}, s, {{}, {}, {-1, 1}, kPositive}));
}

Samples row_norms() {
  Samples out;
  for (const auto& [x, dims] :
       {std::pair{Shape{3, 5}, 1}, std::pair{Shape{2, 4, 33}, 1}, std::pair{Shape{2, 3, 4}, 2}}) {
    add_row_norm("layer_norm", "layer_norm_backward", x, {.dims = dims}, out);
    add_row_norm("rms_norm", "", x, {.dims = dims, .center = false}, out);
  }
  const auto group = [&](Shape x, int64_t groups) {
    add_row_norm("group_norm", "group_norm_backward", x, {.groups = groups}, out);
  };
  group({2, 4, 3, 5}, 2);
  group({3, 3, 2, 4}, 3);
  group({2, 6, 7}, 1);
  group({2, 34}, 2);
  group({1, 32, 2, 3}, 4);
  return out;
}

}  // namespace

Samples norm_samples() {
  Samples out = batch_norm();
  out += fused_gradients();
  add_input_gradients(out);
  out += statistics();
  return out += row_norms();
}

}  // namespace dpt
