// Attention of every instruction set against the operator's plain loops in double; blocks and tiles
// end within, at and behind the last place.
#include "backend/cpu/simd/attention.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cpu/simd/isas.h"
#include "graph/interpret.h"

namespace dpt {
namespace {

HostTensor in_double(std::span<const float> x, Shape shape) {
  return tensor({DType::f64, shape}, {x.begin(), x.end()});
}

// Sums of up to 200 terms, of which none is larger than one, in float.
void check_close(std::span<const float> got, HostTensor& expected) {
  double difference = 0;
  for (size_t i = 0; i < got.size(); ++i)
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - expected.get(i)));
  CHECK(difference < 4e-6);
}

// One head of one sample; each result, and the workspace, with a number behind it that stays.
void check_head(const AttentionKernels& kernels, size_t positions, size_t columns, bool causal) {
  Numbers numbers(positions * 100 + columns);
  const size_t n = positions * columns;
  const std::vector<float> qkv = numbers.reals(3 * n), dy = numbers.reals(n);
  std::vector<float> y(n + 1, 77), logsumexp(positions + 1, 77), dqkv(3 * n + 1, 77);
  std::vector<float> workspace(attention_workspace(positions, columns) + 1, 77);
  const AttentionHead head{.positions = positions,
                           .columns = columns,
                           .qkv_row = 3 * columns,
                           .y_row = columns,
                           .causal = causal,
                           .q = qkv.data(),
                           .k = qkv.data() + columns,
                           .v = qkv.data() + 2 * columns};
  kernels.forward(head, y.data(), logsumexp.data(), workspace.data());
  kernels.backward(head,
                   {dy.data(), y.data(), logsumexp.data(), dqkv.data(), dqkv.data() + columns,
                    dqkv.data() + 2 * columns},
                   workspace.data());
  for (const auto* made : {&y, &logsumexp, &dqkv, &workspace}) CHECK(made->back() == 77);

  const auto t = static_cast<int64_t>(positions), c = static_cast<int64_t>(columns);
  const Attention attrs{.heads = 1, .causal = causal};
  std::vector<HostTensor> in = {in_double(qkv, {1, t, 3 * c})};
  std::vector<HostTensor> out = run_reference(op("attention"), in, attrs);
  check_close({y.data(), n}, out[0]);
  check_close({logsumexp.data(), positions}, out[1]);
  in = {in_double(dy, {1, t, c}), in[0], out[0], out[1]};
  std::vector<HostTensor> gradient = run_reference(op("attention_gradient"), in, attrs);
  check_close({dqkv.data(), 3 * n}, gradient[0]);
}

}  // namespace

TEST_CASE("attention of one head is the plain loops', on every instruction set") {
  struct Size {
    size_t positions, columns;
  };
  for (const SimdKernels* simd : isas_of_this_cpu())
    for (const Size s : {Size{1, 1}, Size{2, 8}, Size{13, 16}, Size{14, 3}, Size{33, 40},
                         Size{56, 32}, Size{64, 17}, Size{65, 7}, Size{121, 33}, Size{200, 9}})
      for (const bool causal : {false, true}) {
        CAPTURE(simd->name);
        CAPTURE(s.positions);
        CAPTURE(s.columns);
        CAPTURE(causal);
        check_head(attention_simd(simd->isa).floats, s.positions, s.columns, causal);
      }
}

TEST_CASE("a score that is not a number is one for all that see it, and for nobody else") {
  constexpr size_t kPlaces = 40, kBad = 20;
  for (const SimdKernels* simd : isas_of_this_cpu()) {
    const AttentionKernels& kernels = attention_simd(simd->isa).floats;
    std::vector<float> qkv(3 * kPlaces, 1), y(kPlaces), logsumexp(kPlaces);
    std::vector<float> workspace(attention_workspace(kPlaces, 1));
    qkv[3 * kBad] = NAN;  // a query, which is that position's own
    const float* const x = qkv.data();
    kernels.forward({kPlaces, 1, 3, 1, false, x, x + 1, x + 2}, y.data(), logsumexp.data(),
                    workspace.data());
    for (size_t i = 0; i < kPlaces; ++i) CHECK(std::isnan(y[i]) == (i == kBad));
    qkv[3 * kBad] = 1;
    qkv[3 * kBad + 1] = NAN;  // a key, which the later ones see
    kernels.forward({kPlaces, 1, 3, 1, true, x, x + 1, x + 2}, y.data(), logsumexp.data(),
                    workspace.data());
    for (size_t i = 0; i < kPlaces; ++i) CHECK(std::isnan(y[i]) == (i >= kBad));
  }
}

}  // namespace dpt
