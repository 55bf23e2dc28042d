// The vector kernels of norms over rows, beside the reference implementation in double.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "graph/in_layouts.h"
#include "graph/norm_rows.h"

namespace dpt {
namespace {

// Runs the kernel of the operator on inputs in plain layout; results are in the layouts of a run.
std::vector<HostTensor> run_vectors(std::string_view name, std::vector<HostTensor>& in,
                                    const RowNorm& s) {
  KernelQuery q{.op = name, .attrs = s};
  for (const HostTensor& t : in) q.in.push_back(t.desc);
  q.out = op(name).infer(q.in, s);
  q = in_layouts(q);
  std::vector<HostTensor> laid_out;
  for (size_t i = 0; i < in.size(); ++i) laid_out.push_back(in_layout(in[i], q.in[i].layout));
  for (const KernelType& row : row_norm_kernels())
    if (row.op == name) {
      REQUIRE(row.refuses(q) == "");
      return run_kernel(row, q, laid_out);
    }
  FAIL("there is no kernel of ", name);
  return {};
}

HostTensor filled(const Shape& shape, double mean, double spread, std::mt19937& random) {
  HostTensor t(f32(shape));
  std::normal_distribution<double> numbers(mean, spread);
  for (size_t i = 0; i < t.size(); ++i) t.set(i, numbers(random));
  return t;
}

// The largest difference from the reference implementation in double, relative to the largest
// number of each result.
double error_of(std::string_view name, std::vector<HostTensor>& in, const RowNorm& s) {
  std::vector<HostTensor> wide;
  for (HostTensor& t : in) {
    wide.emplace_back(TensorDesc{DType::f64, t.desc.shape});
    for (size_t i = 0; i < t.size(); ++i) wide.back().set(i, t.get(i));
  }
  std::vector<HostTensor> expected = run_reference(op(name), wide, s, {});
  std::vector<HostTensor> got = run_vectors(name, in, s);
  double error = 0;
  for (size_t n = 0; n < got.size(); ++n) {
    HostTensor plain = in_layout(expected[n], got[n].desc.layout);
    double largest = 1e-30, difference = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
      largest = std::max(largest, std::abs(plain.get(i)));
      difference = std::max(difference, std::abs(got[n].get(i) - plain.get(i)));
      REQUIRE_FALSE(std::isnan(got[n].get(i)));
    }
    error = std::max(error, difference / largest);
  }
  return error;
}

// The inputs of a gradient: dy, x, moments, and w if `weight`.
std::vector<HostTensor> gradient_inputs(const Shape& x, const RowNorm& s, bool weight,
                                        std::mt19937& random) {
  std::vector<HostTensor> in;
  in.push_back(filled(x, 0, 1, random));
  in.push_back(filled(x, 1, 2, random));
  std::vector<HostTensor> values = {in[1]};
  std::vector<HostTensor> made = run_vectors(names_of(s).norm, values, s);
  for (size_t i = 1; i < made.size(); ++i) in.push_back(made[i]);
  if (weight) in.push_back(filled(weight_shape(s, x), 1, 0.5, random));
  return in;
}

void check_norm(const Shape& x, const RowNorm& s) {
  CAPTURE(x.str());
  CAPTURE(s.groups);
  CAPTURE(s.center);
  std::mt19937 random(3);
  // Some roundings of the largest number.
  constexpr double kClose = 2e-6;
  std::vector<HostTensor> in = {filled(x, 1, 2, random)};
  for (int weights = 0; weights <= (s.center ? 2 : 1); ++weights) {
    CHECK(error_of(names_of(s).norm, in, s) < kClose);
    in.push_back(filled(weight_shape(s, x), 1, 0.5, random));
  }
  for (const bool weight : {false, true}) {
    in = gradient_inputs(x, s, weight, random);
    CHECK(error_of(names_of(s).input_gradient, in, s) < kClose);
  }
  in.pop_back();
  CHECK(error_of(names_of(s).weight_gradient, in, s) < kClose);
}

}  // namespace

TEST_CASE("norms of rows agree with the reference on sizes around a vector's and a chunk's") {
  // In narrower rows, the terms of the input's gradient cancel.
  for (const int64_t width : {7, 8, 9, 15, 16, 17, 31, 33, 257, 1023, 1024, 1025, 2500})
    for (const bool center : {true, false}) check_norm({6, width}, {.center = center});
  check_norm({3, 4, 5, 7}, {.dims = 3});
}

TEST_CASE("group norms agree with the reference on channels around a vector's") {
  for (const int64_t channels : {1, 3, 6, 8, 15, 16, 17, 32, 40})
    for (const int64_t groups : {int64_t{1}, int64_t{2}, channels})
      for (const bool center : {true, false}) {
        if (channels % groups != 0) continue;
        check_norm({3, channels, 5, 7}, {.groups = groups, .center = center});
        check_norm({3, channels, 9}, {.groups = groups, .center = center});
      }
  check_norm({4, 24}, {.groups = 3});
}

TEST_CASE("norms of wide rows, and of rows far from 0, keep single precision") {
  std::mt19937 random(5);
  std::vector<HostTensor> in = {filled({2, 300'000}, 0.5, 1, random)};
  CHECK(error_of("layer_norm", in, RowNorm{}) < 3e-7);
  CHECK(error_of("rms_norm", in, RowNorm{.center = false}) < 3e-7);
  // The mean is stored in single precision: half a unit of 1000 is 3e-5, in rows of deviation 1.
  for (const int64_t width : {1000, 10'000}) {
    in = {filled({2, width}, 1000, 1, random)};
    CHECK(error_of("layer_norm", in, RowNorm{}) < 4e-5);
  }
  in = {filled({2, 4, 50, 50}, 1000, 1, random)};
  CHECK(error_of("group_norm", in, RowNorm{.groups = 2}) < 3e-7);
  in = gradient_inputs({2, 300'000}, {}, true, random);
  CHECK(error_of("layer_norm_input_gradient", in, RowNorm{}) < 3e-7);
}

TEST_CASE("a sample's norm does not depend on the others of its shard") {
  std::mt19937 random(7);
  const RowNorm s{.groups = 2};
  std::vector<HostTensor> in = {filled({5, 6, 3, 3}, 0, 1, random)};
  std::vector<HostTensor> last = {HostTensor(f32({1, 6, 3, 3}))};
  const size_t size = last[0].size();
  for (size_t i = 0; i < size; ++i) last[0].set(i, in[0].get(4 * size + i));
  std::vector<HostTensor> all = run_vectors("group_norm", in, s);
  std::vector<HostTensor> one = run_vectors("group_norm", last, s);
  for (size_t i = 0; i < size; ++i) CHECK(one[0].get(i) == all[0].get(4 * size + i));
}

}  // namespace dpt
