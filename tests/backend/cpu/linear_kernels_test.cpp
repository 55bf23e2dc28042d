// Rows of `linear` and its gradients that pack their operands have the bits of those that don't.
#include <span>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/simd/isas.h"
#include "backend/cpu/simd/simd.h"
#include "graph/in_layouts.h"
#include "skip.h"

namespace dpt {
namespace {

HostTensor f32(Shape shape, const std::vector<float>& x) {
  return tensor({DType::f32, shape}, {x.begin(), x.end()});
}

// What the row of a run makes of these.
std::vector<float> run_row(std::string_view op, std::vector<HostTensor> in, Shape out) {
  KernelQuery q{op, {}, {{DType::f32, out}}, {}};
  for (const HostTensor& t : in) q.in.push_back(t.desc);
  for (const KernelType& row : cpu_kernels()) {
    if (row.op != op || !row.refuses(q).empty()) continue;
    HostTensor y = run_kernel(row, q, in).at(0);
    const auto made = y.view().as<float>();
    return {made.begin(), made.end()};
  }
  FAIL("no row for " << op);
  return {};
}

void check_products(int64_t samples, int64_t positions, int64_t out, int64_t in) {
  const SimdKernels& simd = simd_kernels();
  const auto n = static_cast<size_t>(samples * positions), o = static_cast<size_t>(out);
  const auto i = static_cast<size_t>(in);
  CAPTURE(n);
  CAPTURE(o);
  CAPTURE(i);
  Numbers numbers(n + o + i);
  const std::vector<float> x = numbers.reals(n * i), w = numbers.reals(o * i), b = numbers.reals(o);
  const std::vector<float> dy = numbers.reals(n * o);
  const HostTensor xs = f32({samples, positions, in}, x), ws = f32({out, in}, w),
                   bs = f32({out}, b);
  const HostTensor dys = f32({samples, positions, out}, dy);

  std::vector<float> y(n * o);
  simd.linear(x.data(), w.data(), b.data(), y.data(), n, o, i, n);
  CHECK(run_row("linear", {xs, ws, bs}, {samples, positions, out}) == y);
  simd.linear(x.data(), w.data(), nullptr, y.data(), n, o, i, n);
  CHECK(run_row("linear", {xs, ws}, {samples, positions, out}) == y);
  std::vector<float> dx(n * i);
  simd.matmul(dy.data(), w.data(), nullptr, dx.data(), n, i, o);
  CHECK(run_row("matmul", {dys, ws}, {samples, positions, in}) == dx);
  std::vector<float> dw(o * i);
  simd.linear_weight_gradient(dy.data(), o, x.data(), dw.data(), n, o, i, false);
  CHECK(run_row("linear_weight_gradient", {dys, xs}, {out, in}) == dw);
}

}  // namespace

TEST_CASE("products of linear layers that are packed have the bits of those that are not") {
  if (skip_without(simd_kernels().isa != Isa::baseline, "AVX2"))
    return;                          // else the reference takes them
  check_products(4, 130, 520, 70);   // the gradient of the weight, for the rows of dy
  check_products(3, 300, 66, 300);   // x, which is large; dy is not
  check_products(2, 330, 530, 401);  // all of them
  check_products(5, 7, 70, 300);     // none, but for long rows
}

}  // namespace dpt
