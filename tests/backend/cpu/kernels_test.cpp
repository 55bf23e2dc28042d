// Every row of every list against the operator's plain loops, on the operator's own samples.
#include "backend/cpu/kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include <doctest/doctest.h>

#include "base/half.h"
#include "graph/operator.h"

namespace dpt {
namespace {

struct Tensors {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorView> views;
  explicit Tensors(const std::vector<TensorDesc>& descs) {
    for (const TensorDesc& d : descs) {
      bytes.emplace_back(std::max<size_t>(64, d.bytes()));
      views.push_back({d, bytes.back().data()});
    }
  }
};

void fill(const Sample& s, std::mt19937& random, Tensors& in) {
  for (size_t i = 0; i < in.views.size(); ++i) {
    const Sample::Range range = i < s.ranges.size() ? s.ranges[i] : Sample::Range{};
    const TensorView& v = in.views[i];
    const double unit = 1.0 / 4294967296.0;
    for (int64_t e = 0; e < v.desc.shape.elements(); ++e) {
      const double x =
          range.low + (range.high - range.low) * (static_cast<double>(random()) * unit);
      if (v.desc.dtype == DType::i32)
        v.as<int32_t>()[static_cast<size_t>(e)] = static_cast<int32_t>(std::floor(x));
      else if (v.desc.dtype == DType::u8)
        v.as<uint8_t>()[static_cast<size_t>(e)] = static_cast<uint8_t>(std::floor(x));
      else if (is_half(v.desc.dtype))
        v.as<uint16_t>()[static_cast<size_t>(e)] = v.desc.dtype == DType::bf16
                                                       ? to_bf16(static_cast<float>(x))
                                                       : to_f16(static_cast<float>(x));
      else
        v.as<float>()[static_cast<size_t>(e)] = static_cast<float>(x);
    }
  }
}

double number(const TensorView& v, size_t i) {
  if (v.desc.dtype == DType::bf16) return double{from_bf16(v.as<uint16_t>()[i])};
  if (v.desc.dtype == DType::f16) return double{from_f16(v.as<uint16_t>()[i])};
  return v.desc.dtype == DType::f64 ? v.as<double>()[i] : double{v.as<float>()[i]};
}

// Sums of up to a few hundred f32 terms of size one: 1e-5 is some ten roundings of the result;
// scaled by the largest value, since terms may cancel.
void close(const TensorView& a, const TensorView& b) {
  double largest = 1, difference = 0;
  for (int64_t e = 0; e < a.desc.shape.elements(); ++e) {
    const auto i = static_cast<size_t>(e);
    const double x = number(a, i), y = number(b, i);
    largest = std::max(largest, std::fabs(y));
    difference = std::max(difference, std::isnan(x) && std::isnan(y) ? 0 : std::fabs(x - y));
  }
  CHECK(difference <= 1e-5 * largest);
}

TEST_CASE("every kernel agrees with the plain loops on every sample of its operator") {
  std::mt19937 random(1);
  int compared = 0;
  for (const OperatorType& type : operator_table()) {
    if (type.view) continue;
    for (const Sample& s : type.samples()) {
      Tensors in(s.query.in), expected(s.query.out);
      fill(s, random, in);
      const StepContext context{7, 3, 11};
      type.reference({in.views, expected.views, &context}, s.query.attrs);
      for (const KernelType& row : cpu_kernels()) {
        if (row.op != type.name || (row.refuses && !row.refuses(s.query).empty())) continue;
        CAPTURE(type.name);
        CAPTURE(row.name);
        Tensors got(s.query.out);
        row.prepare(s.query)->run({in.views, got.views, &context});
        for (size_t i = 0; i < got.views.size(); ++i) close(got.views[i], expected.views[i]);
        ++compared;
      }
    }
  }
  CHECK(compared > 40);
}

TEST_CASE("the last row takes whatever there is, so that every operator has a kernel") {
  CHECK(cpu_kernels().back().name == "reference");
  CHECK(cpu_kernels().back().op.empty());
  for (const KernelType& row : reference_kernels()) CHECK(row.name == "reference");
}

}  // namespace
}  // namespace dpt
