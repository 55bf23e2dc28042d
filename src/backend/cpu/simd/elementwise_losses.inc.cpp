// Elementwise losses and their derivatives: the formulas of graph/formulas on vectors. Terms are
// summed in double.
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/lanes_math.h"
#include "graph/formulas/loss.h"

namespace dpt::DPT_ISA {
namespace {

using L = PointLoss;

template <L kind>
DPT_SIMD Lanes term(Lanes x, Lanes t, [[maybe_unused]] Lanes s, [[maybe_unused]] Lanes s1) {
  if constexpr (kind == L::mse) return formula::mse(x, t);
  if constexpr (kind == L::l1) return formula::l1(x, t);
  if constexpr (kind == L::smooth_l1) return formula::smooth_l1(x, t, s);
  if constexpr (kind == L::huber) return formula::huber(x, t, s);
  if constexpr (kind == L::bce) return formula::bce(x, t);
  if constexpr (kind == L::bce_with_logits) return formula::bce_with_logits(x, t, Lanes(1));
  if constexpr (kind == L::kl_div) return formula::kl_div(x, t);
  if constexpr (kind == L::kl_div_log_target) return formula::kl_div_log_target(x, t);
  if constexpr (kind == L::soft_margin) return formula::soft_margin(x, t);
  if constexpr (kind == L::poisson_nll) return formula::poisson_nll(x, t, s);
  if constexpr (kind == L::poisson_nll_log_input) return formula::poisson_nll_log_input(x, t);
  if constexpr (kind == L::poisson_nll_full)
    return formula::poisson_nll(x, t, s) + formula::stirling(t);
  if constexpr (kind == L::poisson_nll_log_input_full)
    return formula::poisson_nll_log_input(x, t) + formula::stirling(t);
  if constexpr (kind == L::sigmoid_focal) return formula::sigmoid_focal(x, t, s, s1);
}

template <L kind>
DPT_SIMD Lanes slope(Lanes x, Lanes t, [[maybe_unused]] Lanes s, [[maybe_unused]] Lanes s1) {
  if constexpr (kind == L::mse) return formula::mse_slope(x, t);
  if constexpr (kind == L::l1) return formula::l1_slope(x, t);
  if constexpr (kind == L::smooth_l1) return formula::smooth_l1_slope(x, t, s);
  if constexpr (kind == L::huber) return formula::huber_slope(x, t, s);
  if constexpr (kind == L::bce) return formula::bce_slope(x, t);
  if constexpr (kind == L::bce_with_logits) return formula::bce_with_logits_slope(x, t, Lanes(1));
  if constexpr (kind == L::kl_div) return formula::kl_div_slope(x, t);
  if constexpr (kind == L::kl_div_log_target) return formula::kl_div_log_target_slope(x, t);
  if constexpr (kind == L::soft_margin) return formula::soft_margin_slope(x, t);
  if constexpr (kind == L::poisson_nll || kind == L::poisson_nll_full)
    return formula::poisson_nll_slope(x, t, s);
  if constexpr (kind == L::poisson_nll_log_input || kind == L::poisson_nll_log_input_full)
    return formula::poisson_nll_log_input_slope(x, t);
  if constexpr (kind == L::sigmoid_focal) return formula::sigmoid_focal_slope(x, t, s, s1);
}

// Sums in 16 chains that a binary tree combines, in the same order on every instruction set.
template <L kind>
double forward(const float* x, const float* t, size_t n, const float* s) {
  const Lanes s0 = all(s[0]), s1 = all(s[1]);
  double sum[16] = {};
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        float terms[kLanes];
        store(terms, term<kind>(at.get(x + i), at.get(t + i), s0, s1).v);
        const size_t count = n - i < kLanes ? n - i : kLanes, from = i % 16;
        if (count == kLanes) {
          for (size_t j = 0; j < kLanes; ++j) sum[from + j] += static_cast<double>(terms[j]);
        } else {
          for (size_t j = 0; j < count; ++j) sum[from + j] += static_cast<double>(terms[j]);
        }
      });
  for (int step = 8; step > 0; step /= 2)
    for (int j = 0; j < step; ++j) sum[j] += sum[j + step];
  return sum[0];
}

template <L kind>
void backward(const float* x, const float* t, float* dx, size_t n, const float* s, float factor) {
  const Lanes s0 = all(s[0]), s1 = all(s[1]), f = all(factor);
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) {
        at.put(dx + i, slope<kind>(at.get(x + i), at.get(t + i), s0, s1) * f);
      });
}

template <L kind>
void add_one(ElementwiseKernels& kernels) {
  kernels.loss[static_cast<int>(kind)] = forward<kind>;
  kernels.loss_gradient[static_cast<int>(kind)] = backward<kind>;
}

}  // namespace

void add_point_losses(ElementwiseKernels& kernels) {
  add_one<L::mse>(kernels);
  add_one<L::l1>(kernels);
  add_one<L::smooth_l1>(kernels);
  add_one<L::huber>(kernels);
  add_one<L::bce>(kernels);
  add_one<L::bce_with_logits>(kernels);
  add_one<L::kl_div>(kernels);
  add_one<L::kl_div_log_target>(kernels);
  add_one<L::soft_margin>(kernels);
  add_one<L::poisson_nll>(kernels);
  add_one<L::poisson_nll_full>(kernels);
  add_one<L::poisson_nll_log_input>(kernels);
  add_one<L::poisson_nll_log_input_full>(kernels);
  add_one<L::sigmoid_focal>(kernels);
}

}  // namespace dpt::DPT_ISA
