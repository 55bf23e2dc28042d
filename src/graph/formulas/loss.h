// What the formulas of losses share. Each file in losses/ holds a pointwise loss as in PyTorch: the
// term of one element and its slope, which is the derivative with respect to the model's output x,
// on a scalar or a vector of scalars (T).
//
// A pointwise loss is a struct with
//   its parameters, if any: members of type double and bool with PyTorch's defaults, and
//     `kParameters`, which lists them
//   static constexpr PointwiseLossRow kRow
//   static constexpr LossSample kSamples[], for tests
//   T value(T x, T t) const, T slope(T x, T t) const; t: the target. With kRow.pos_weight, a third
//     argument p is the weight of positive targets
//   double estimate(double x) const, optional: the target that an output estimates, if not x itself
//   double share, optional: a factor of the terms, for means over the last dimension; the layer
//     sets it to 1 / extent if the reduction is sum
// Its name in losses.h makes the word of a spec, the operators, the kernels of CPUs and GPUs, and
// the line of an exported program.
#pragma once

#include <stddef.h>

#include "graph/formulas/math.h"
#include "graph/formulas/parameter.h"

namespace dpt::formula {

// What the outputs of a model are that a loss has trained.
enum class OutputKind {
  values,             // estimates of the targets
  scores,             // softmax over the classes makes them probabilities
  log_probabilities,  // exp makes them probabilities
  logits,             // sigmoid makes each of them a probability
  probabilities
};

struct PointwiseLossRow {
  const char *name, *gradient;  // of the operators; `name` is also the word of a spec
  // The same in PyTorch, lines of a spec that use it, what it is.
  const char *torch = "", *example, *summary;
  OutputKind outputs = OutputKind::values;
  // The other fields are those of LossType (layers/loss.h) and OperatorType (graph/operator.h).
  bool estimates = false, signs = false;
  const char *needs = "", *torch_class = "", *autocast_refuses = "";
  bool unit_targets = false;                // targets outside [0, 1] are refused
  bool batchmean = false;                   // another reduction: the sum over the samples
  bool weight = false, pos_weight = false;  // keys: weights of elements, and of positive targets
  bool reduction_first = true;              // whether `reduction` is the first key or the last
  bool pairs = false;  // x is the difference of the two halves of an output [N, 2, ...]
};

// Outputs and targets of a test, and parameters in the order of kParameters. Tests keep outputs
// away from points where the slope jumps.
struct LossSample {
  double low, high, target_low, target_high;
  double parameters[3] = {};
};

// Which inputs of the operator are the weights of elements and of positive targets; 0: none is.
struct LossWeights {
  size_t element = 0, positive = 0;
};
template <class F>
LossWeights weights_of([[maybe_unused]] const F& loss, size_t inputs) {
  constexpr size_t kFirst = 3;  // output, target and divisor precede it
  if constexpr (F::kRow.pos_weight)
    return {.element = loss.weight ? kFirst : 0,
            .positive = loss.pos_weight ? kFirst + (loss.weight ? 1 : 0) : 0};
  else
    return {.element = inputs > kFirst ? kFirst : 0};
}

// The term of an element, and its slope, with the weights of the element and of positive targets.
template <class F, class T>
DPT_FORMULA T loss_term(const F& loss, T x, T t, [[maybe_unused]] T weight,
                        [[maybe_unused]] T positive) {
  if constexpr (F::kRow.pos_weight)
    return weight * loss.value(x, t, positive);
  else if constexpr (F::kRow.weight)
    return weight * loss.value(x, t);
  else
    return loss.value(x, t);
}
template <class F, class T>
DPT_FORMULA T loss_slope(const F& loss, T x, T t, [[maybe_unused]] T weight,
                         [[maybe_unused]] T positive) {
  if constexpr (F::kRow.pos_weight)
    return weight * loss.slope(x, t, positive);
  else if constexpr (F::kRow.weight)
    return weight * loss.slope(x, t);
  else
    return loss.slope(x, t);
}

// Formulas that several losses use.

template <class T>
DPT_FORMULA T sign(T d) {  // 0 for 0, nan for nan
  return select(d > T(0), T(1), select(d < T(0), T(-1), d));
}

// p: the weight of positive targets.
template <class T>
DPT_FORMULA T bce_with_logits(T x, T t, T p) {
  const T weight = (p - T(1)) * t + T(1);
  const T below = select(x < T(0), -x, T(0));
  return (T(1) - t) * x + weight * (log1p(exp(-abs(x))) + below);
}
template <class T>
DPT_FORMULA T bce_with_logits_slope(T x, T t, T p) {
  const T positive = p * t;
  return (positive + T(1) - t) * reciprocal(T(1) + exp(-x)) - positive;
}

// q^gamma for 0 <= q <= 1.
template <class T>
DPT_FORMULA T focal_power(T q, double gamma) {
  if (gamma == 0) return T(1);
  if (gamma == 2) return q * q;
  return exp(T(gamma) * log(q));
}

// -x (1 - exp(x))^gamma for a log-probability x: nll_loss with the factor of focal_loss.
template <class T>
DPT_FORMULA T focal(T x, double gamma) {
  return -x * focal_power(-expm1(x), gamma);
}
template <class T>
DPT_FORMULA T focal_slope(T x, double gamma) {
  const T q = -expm1(x);
  return focal_power(q, gamma) * (T(gamma) * exp(x) * select(q > T(0), x / q, T(-1)) - T(1));
}

}  // namespace dpt::formula
