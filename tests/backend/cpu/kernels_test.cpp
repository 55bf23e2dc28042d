// Every row of every list against the operator's plain loops, on the operator's own samples.
#include "backend/cpu/kernels.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <doctest/doctest.h>

#include "graph/in_layouts.h"

namespace dpt {
namespace {

// Sums of up to a few hundred f32 terms of size one: 1e-5 is some ten roundings of the result;
// scaled by the largest value, since terms may cancel.
void close(HostTensor& a, HostTensor& b) {
  double largest = 1, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a.get(i), y = b.get(i);
    largest = std::max(largest, std::fabs(y));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    REQUIRE_FALSE(std::isnan(x - y));
    difference = std::max(difference, std::fabs(x - y));
  }
  CHECK(difference <= 1e-5 * largest);
}

TEST_CASE("every kernel agrees with the plain loops on every sample of its operator") {
  std::mt19937 random(1);
  int compared = 0;
  for (const OperatorType& type : operator_table()) {
    if (type.is(Trait::view)) continue;
    for (const Sample& s : samples_of(type.name)) {
      const StepContext context{7, 3, 11};
      std::vector<HostTensor> in;
      for (size_t i = 0; i < s.query.in.size(); ++i)
        in.push_back(sample_input(s, i, DType::f32, random));
      std::vector<HostTensor> expected = run_reference(type, in, s.query.attrs, context);
      for (const KernelType& row : cpu_kernels()) {
        if (row.op != type.name || (row.refuses && !row.refuses(s.query).empty())) continue;
        CAPTURE(type.name);
        CAPTURE(row.name);
        std::vector<HostTensor> got = run_kernel(row, s.query, in, context);
        for (size_t i = 0; i < got.size(); ++i) close(got[i], expected[i]);
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
