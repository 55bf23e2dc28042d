// Terms of cross_entropy at positions of which the logarithm of the sum is known. Only for .inc.cpp
// files, see isa.h.
#pragma once

#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/lanes_math.h"

namespace dpt::DPT_ISA {

DPT_SIMD float plain_sum(const float* x, size_t n) {
  Lanes sum = zero();
  each_vector(
      n, [&](size_t i, auto at) __attribute__((always_inline)) { sum += at.get(x + i); });
  return sum_of(sum);
}

// The sum of the weights of all classes.
DPT_SIMD float total_weight(const ClassLossArgs& a) {
  return a.weight == nullptr ? static_cast<float>(a.c) : plain_sum(a.weight, a.c);
}

// The term of class y, whose score is `score` below the largest: (1 - e) w[y] (log sum - score) + e
// / C (W log sum - below), with e the label smoothing, W the sum of w, and `below` that of w times
// the distance of each score.
DPT_SIMD float class_term(const ClassLossArgs& a, int32_t y, float score, float log_sum,
                          float all_weights, float below) {
  const float even = a.smoothing / static_cast<float>(a.c),
              w = a.weight == nullptr ? 1 : a.weight[y];
  const float term = w == 0 ? 0 : (1 - a.smoothing) * w * (log_sum - score);
  return a.smoothing == 0 ? term : term + even * (all_weights * log_sum - below);
}

// The weight q of classes with these probabilities: w (p (1 - e) + e / C).
DPT_SIMD Lanes probable(const ClassLossArgs& a, Lanes w, Lanes p) {
  const float even = a.smoothing / static_cast<float>(a.c);
  return w * madd(p, all(1 - a.smoothing), all(even));
}

// q * (log sum - score); 0 where q is 0, even if the score is -inf.
DPT_SIMD Lanes probable_term(Lanes q, Lanes log_sum, Lanes score) {
  return select(q == Lanes(0), Lanes(0), q * (log_sum - score));
}

}  // namespace dpt::DPT_ISA
