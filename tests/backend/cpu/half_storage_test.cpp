// Kernels that read and write images of bf16 in 16 bits, beside those of f32 whose inputs are the
// same numbers and whose results are rounded.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "base/flush_subnormals.h"
#include "base/half.h"
#include "graph/attrs.h"
#include "graph/fuzzed_samples.h"
#include "graph/in_layouts.h"

namespace dpt {
namespace {

// The query with all f32 inputs that have a sample dimension in bf16, or nothing if no kernel takes
// it.
std::optional<KernelQuery> in_halves(const OperatorType& type, KernelQuery q) {
  if (type.precision == Precision::compute || type.is(Trait::halves)) return {};
  for (TensorDesc& d : q.in)
    if (d.dtype == DType::f32 && d.shape.rank() > 1) d.dtype = DType::bf16;
  if (q.in[0].dtype != DType::bf16) return {};
  std::vector<TensorDesc> out;
  try {
    out = type.infer(q.in, q.attrs);
  } catch (const Error&) {
    return {};
  }
  for (size_t i = 0; i < out.size(); ++i) q.out[i].dtype = out[i].dtype;
  return q;
}

const KernelType* kernel_of(const KernelQuery& q) {
  for (const KernelType& row : cpu_kernels())
    if (row.op == q.op && row.refuses(q).empty()) return &row;
  return nullptr;
}

// Fused operators round between their steps.
void round_between(KernelQuery& q) {
  if (auto* norm = std::any_cast<BatchNorm>(&q.attrs); norm != nullptr && norm->add)
    norm->between = DType::bf16;
}

void check_bits(HostTensor& got, HostTensor& expected) {
  for (size_t i = 0; i < got.size(); ++i) {
    const double a = got.get(i);
    double b = expected.get(i);
    if (got.desc.dtype == DType::bf16) b = double{rounded_to(DType::bf16, static_cast<float>(b))};
    if (std::isnan(a) && std::isnan(b)) continue;
    REQUIRE_MESSAGE(a == b, "element " << i << ": " << a << " and " << b);
  }
}

// The kernels of the sample's operator that take bf16, by name.
using Counts = std::map<std::string, int>;

void compare(const Sample& s, std::mt19937& random, Counts& counts) {
  const OperatorType& type = op(s.query.op);
  KernelQuery floats = in_layouts(s.query);
  round_between(floats);
  const std::optional<KernelQuery> halves = in_halves(type, floats);
  if (!halves) return;
  const KernelType *const of_halves = kernel_of(*halves), *const of_floats = kernel_of(floats);
  if (of_halves == nullptr || of_floats == nullptr) return;
  CAPTURE(type.name);
  CAPTURE(floats.in[0].shape.str());
  if (of_floats->rounds && halves->out[0].dtype == DType::bf16) floats.rounds = DType::bf16;
  std::vector<HostTensor> in, in16;
  for (size_t i = 0; i < s.query.in.size(); ++i) {
    HostTensor t = sample_input(s, i, DType::f32, random);
    const DType type16 = halves->in[i].dtype;
    for (size_t e = 0; e < t.size() && type16 == DType::bf16; ++e)
      t.set(e, double{rounded_to(DType::bf16, static_cast<float>(t.get(e)))});
    in.push_back(in_layout(t, floats.in[i].layout));
    in16.emplace_back(halves->in[i]);
    for (size_t e = 0; e < t.size(); ++e) in16.back().set(e, in.back().get(e));
  }
  const FlushSubnormals flush;
  std::vector<HostTensor> got = run_kernel(*of_halves, *halves, in16);
  std::vector<HostTensor> expected = run_kernel(*of_floats, floats, in);
  for (size_t i = 0; i < got.size(); ++i) check_bits(got[i], expected[i]);
  ++counts[std::string(type.name)];
}

}  // namespace

TEST_CASE("kernels on bf16 in 16 bits give the rounded results of the kernels on f32") {
  ShapeFuzzer fuzzer(3);
  Counts counts;
  for (const OperatorType& type : operator_table()) {
    if (type.is(Trait::view)) continue;
    const Samples& samples = samples_of(type.name);
    for (const Sample& s : samples) compare(s, fuzzer.random(), counts);
    for (int i = 0; i < 40; ++i)
      if (const std::optional<Sample> s = fuzzer.draw(samples))
        compare(*s, fuzzer.random(), counts);
  }
  for (const char* name :
       {"relu", "relu_gradient", "gelu", "max_pool", "max_pool_gradient", "sum_channels",
        "channel_sums", "batch_norm", "batch_norm_sums", "batch_norm_input_gradient"}) {
    CAPTURE(name);
    CHECK(counts[name] > 0);
  }
}

// 3 vectors and a part of one; the loops over whole vectors are those of training.
TEST_CASE("images of bf16 with many channels give the rounded results of images of f32") {
  Counts counts;
  std::mt19937 random(2);
  for (const int64_t channels : {64, 53}) {
    const TensorDesc x{DType::f32, {3, channels, 5, 6}}, moments{DType::f64, {2 * channels}};
    const TensorDesc sums{DType::f64, {2 * channels + 1}}, weight{DType::f32, {channels}};
    for (const bool relu : {false, true})
      for (const bool add : {false, true}) {
        if (add && !relu) continue;
        const BatchNorm attrs{.add = add, .relu = relu};
        const auto with = [&](std::string_view op, std::vector<TensorDesc> in,
                              std::vector<TensorDesc> out) {
          compare(
              {{op, std::move(in), std::move(out), attrs}, std::vector<Sample::Range>(8, {0.1, 2})},
              random, counts);
        };
        if (add) {
          with("batch_norm", {x, x, moments, weight, weight}, {x});
          with("batch_norm_sums", {x, x, moments, x, x}, {x, sums});
          with("batch_norm_sums", {x, x, moments, x}, {x, sums});
        } else {
          with("batch_norm", {x, moments, weight, weight}, {x});
          if (relu)
            with("batch_norm_sums", {x, x, moments, weight, weight}, {sums});
          else
            with("batch_norm_sums", {x, x, moments}, {sums});
          with("batch_norm_input_gradient", {x, x, moments, sums, weight, weight}, {x});
        }
      }
    compare({{"channel_sums", {x}, {sums}, {}}}, random, counts);
    compare({{"sum_channels", {x}, {weight}, {}}}, random, counts);
    compare({{"relu", {x}, {x}, {}}}, random, counts);
    compare({{"relu_gradient", {x, x}, {x}, {}}}, random, counts);
  }
  CHECK(counts["batch_norm"] == 6);
  CHECK(counts["batch_norm_sums"] == 8);
  CHECK(counts["batch_norm_input_gradient"] == 4);
  CHECK((counts["sum_channels"] == 2 && counts["channel_sums"] == 2 && counts["relu"] == 2));
}

}  // namespace dpt
