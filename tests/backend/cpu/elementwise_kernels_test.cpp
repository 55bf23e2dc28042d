// The fast rows against the operators' plain loops, on the operators' samples and on the shapes
// that the shipped specs have.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "base/error.h"
#include "graph/attrs.h"
#include "graph/formulas/losses.h"
#include "graph/interpret.h"
#include "graph/operator.h"

namespace dpt {
namespace {

std::vector<KernelType> element_kernels() {
  std::vector<KernelType> out = elementwise_kernels();
  for (const KernelType& row : softmax_kernels()) out.push_back(row);
  return out;
}

const StepContext kContext{.seed = 11, .step = 3, .first_sample = 40};

std::vector<HostTensor> inputs_of(const Sample& s, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<HostTensor> in;
  for (size_t i = 0; i < s.query.in.size(); ++i)
    in.push_back(sample_input(s, i, DType::f32, random));
  return in;
}

std::vector<HostTensor> run_row(const KernelType& row, const KernelQuery& query,
                                std::vector<HostTensor>& in, const StepContext& context) {
  std::vector<TensorView> from, to;
  for (HostTensor& t : in) from.push_back(t.view());
  std::vector<HostTensor> out;
  for (const TensorDesc& d : query.out) out.emplace_back(d);
  for (HostTensor& t : out) {
    for (size_t i = 0; i < t.size(); ++i) t.set(i, NAN);
    to.push_back(t.view());
  }
  row.prepare(query)->run({from, to, &context});
  return out;
}

// Compares a row with the plain loops; gives how many elements it compared.
size_t compare(const KernelType& row, const Sample& s, unsigned seed) {
  auto in = inputs_of(s, seed);
  auto fast = run_row(row, s.query, in, kContext);
  auto plain = run_reference(op(s.query.op), in, s.query.attrs, kContext);
  size_t compared = 0;
  for (size_t r = 0; r < fast.size(); ++r) {
    // Absolute for the size of what was added up: single precision, a few roundings each.
    double size = 1e-30;
    for (size_t i = 0; i < plain[r].size(); ++i) size = std::max(size, std::abs(plain[r].get(i)));
    for (size_t i = 0; i < plain[r].size(); ++i, ++compared) {
      const double a = fast[r].get(i), b = plain[r].get(i);
      INFO("result ", r, " element ", i, ": ", a, " and ", b);
      REQUIRE(std::abs(a - b) <= 2e-6 * std::abs(b) + 1e-6 * size);
    }
  }
  return compared;
}

Sample with_shape(std::string_view name, std::vector<TensorDesc> in, std::any attrs,
                  std::vector<Sample::Range> ranges) {
  const std::vector<TensorDesc> out = op(name).infer(in, attrs);
  return {{name, std::move(in), out, std::move(attrs)}, std::move(ranges)};
}

}  // namespace

TEST_CASE("fast rows agree with the plain loops on the samples of their operators") {
  std::set<std::string_view> compared;
  for (const KernelType& row : element_kernels())
    for (const Sample& s : samples_of(row.op)) {
      CAPTURE(row.op);
      CAPTURE(s.query.in[0].shape.str());
      if (const std::string reason = row.refuses(s.query); !reason.empty()) continue;
      compare(row, s, 1);
      compared.insert(row.op);
    }
  CHECK(compared.size() == element_kernels().size());
}

TEST_CASE("fast rows agree with the plain loops on sizes around a vector's") {
  for (const KernelType& row : element_kernels()) {
    const Sample first = samples_of(row.op)[0];
    CAPTURE(row.op);
    for (int64_t columns : {1, 2, 7, 8, 9, 10, 15, 16, 17, 31, 64, 65, 200, 257}) {
      CAPTURE(columns);
      const std::string_view name = row.op;
      if (name.starts_with("cross_entropy")) {
        const TensorDesc x = f32({20, columns}), t{DType::i32, {20}};
        const std::vector<Sample::Range> ranges = {
            {-20, 20}, {0, static_cast<double>(columns)}, {5, 50}, {0, 3}};
        for (double e : {0.0, 0.1}) {
          const CrossEntropy attrs{.label_smoothing = e, .ignore_index = 1};
          compare(row,
                  with_shape(name, {x, t, f32({1})}, attrs, {ranges.begin(), ranges.end() - 1}), 3);
          compare(row, with_shape(name, {x, t, f32({1}), f32({columns})}, attrs, ranges), 4);
          if (columns == 1) continue;  // the gradient is 0, which has no relative error
          const TensorDesc pixels = f32({2, columns, 19}), classes{DType::i32, {2, 19}};
          for (const TensorDesc& target : {classes, pixels})
            compare(row,
                    with_shape(name, {pixels, target, f32({1}), f32({columns})}, attrs, ranges), 8);
        }
      } else if (name.find("softmax") != std::string_view::npos) {
        const std::vector<TensorDesc> in(first.query.in.size(), f32({20, columns}));
        compare(row, with_shape(name, in, Softmax{1}, first.ranges), 5);
        const std::vector<TensorDesc> pixels(first.query.in.size(), f32({2, columns, 19}));
        compare(row, with_shape(name, pixels, Softmax{1}, first.ranges), 9);
      } else if (name == "dropout" || name == "dropout_gradient") {
        for (double p : {0.0, 0.1, 0.5, 1.0})
          compare(row, with_shape(name, {f32({5, columns})}, Dropout{.p = p, .key = 9}, {}), 6);
      } else if (name.starts_with("gaussian_nll_loss")) {
        compare(row,
                with_shape(name, {f32({7, 2 * columns}), f32({7, columns}), f32({1})},
                           first.query.attrs, first.ranges),
                7);
      } else if (name.starts_with("bce_with_logits_loss")) {
        const TensorDesc x = f32({7, columns}), w = f32({columns});
        const formula::BceWithLogits attrs{.weight = true, .pos_weight = true};
        const std::vector<Sample::Range> ranges = {{-5, 5}, {0, 1}, {1, 8}, {0, 2}, {0, 2}};
        compare(row, with_shape(name, {x, x, f32({1}), w, w}, attrs, ranges), 7);
        compare(row, with_shape(name, {x, x, f32({1}), f32({1}), w}, attrs, ranges), 8);
      } else if (first.query.in.size() <= 3 && first.query.out[0].dtype == DType::f64) {
        compare(row,
                with_shape(name, {f32({7, columns}), f32({7, columns}), f32({1})},
                           first.query.attrs, first.ranges),
                7);
      }
    }
  }
}

TEST_CASE("dropout keeps the very elements that the plain loops keep") {
  for (const KernelType& row : element_kernels()) {
    if (row.op != "dropout") continue;
    for (int64_t width : {1, 5, 64, 200, 333}) {
      const Sample s =
          with_shape("dropout", {f32({9, width})}, Dropout{.p = 0.3, .key = 4}, {{1, 2}});
      auto in = inputs_of(s, 2);
      auto fast = run_row(row, s.query, in, kContext);
      auto plain = run_reference(op("dropout"), in, s.query.attrs, kContext);
      for (size_t i = 0; i < fast[0].size(); ++i) CHECK(fast[0].get(i) == plain[0].get(i));
    }
  }
}

TEST_CASE("a sample's values do not depend on the shard it is in") {
  for (const KernelType& row : element_kernels()) {
    const OperatorType& type = op(row.op);
    const Sample first = samples_of(type.name)[0];
    // Those whose inputs and result are all alike: [N, ...].
    if (!std::ranges::all_of(first.query.in, [&](auto& d) { return d == first.query.out[0]; }))
      continue;
    CAPTURE(row.op);
    const std::vector<TensorDesc> whole_in(first.query.in.size(), f32({13, 21}));
    const std::vector<TensorDesc> piece_in(first.query.in.size(), f32({4, 21}));
    const Sample whole = with_shape(row.op, whole_in, first.query.attrs, first.ranges);
    const Sample piece = with_shape(row.op, piece_in, first.query.attrs, first.ranges);
    auto in = inputs_of(whole, 9);
    auto all = run_row(row, whole.query, in, kContext);
    std::vector<HostTensor> part;
    for (HostTensor& t : in) {
      part.emplace_back(f32({4, 21}));
      for (size_t i = 0; i < part.back().size(); ++i) part.back().set(i, t.get(5 * 21 + i));
    }
    StepContext context = kContext;
    context.first_sample += 5;
    auto some = run_row(row, piece.query, part, context);
    for (size_t i = 0; i < some[0].size(); ++i) CHECK(some[0].get(i) == all[0].get(5 * 21 + i));
  }
}

TEST_CASE("rows say why they do not take a query") {
  std::set<std::string> reasons;
  for (const KernelType& row : element_kernels())
    for (const Sample& s : samples_of(row.op)) {
      reasons.insert(row.refuses(s.query));
      KernelQuery twice = s.query;
      for (TensorDesc& d : twice.in)
        if (d.dtype == DType::f32) d.dtype = DType::f64;
      CHECK_FALSE(row.refuses(twice).empty());
    }
  CHECK(reasons == std::set<std::string>{"", "it takes images channels_last"});
}

TEST_CASE("fast rows refuse targets and indices that are out of range, naming the sample") {
  const auto run = [](std::string_view name, std::vector<HostTensor> in, std::any attrs) {
    std::vector<TensorDesc> descs;
    for (HostTensor& t : in) descs.push_back(t.desc);
    const KernelQuery query{name, descs, op(name).infer(descs, attrs), attrs};
    for (const KernelType& row : element_kernels())
      if (row.op == name) run_row(row, query, in, kContext);
  };
  CHECK_THROWS_WITH_AS(run("cross_entropy",
                           {tensor(f32({2, 2}), {1, 2, 3, 4}), tensor({DType::i32, {2}}, {0, 2}),
                            tensor(f32({1}), {1})},
                           CrossEntropy{}),
                       "target 2 of sample 1 in its batch is not in [0, 2)", Error);
  CHECK_THROWS_WITH_AS(
      run("embedding",
          {tensor({DType::i32, {2, 2}}, {0, 1, 1, -3}), tensor(f32({3, 1}), {1, 2, 3})},
          Embedding{}),
      "embedding: index -3 of sample 1 in its batch is not in [0, 3)", Error);
}

}  // namespace dpt
