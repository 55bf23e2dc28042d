// Losses of outputs that hold several vectors or a sequence for each sample. The formulas are those
// of the CPU; a loss is summed in double, and its gradient is divided by the divisor (Note
// [divisor] in layers/loss.h).
#pragma once

#include "backend/cuda/kernels/step_state.h"
#include "backend/cuda/kernels/sums.h"
#include "graph/formulas/ctc.h"
#include "graph/formulas/vector_losses.h"

namespace dpt::cuda {

// The term of target k. half: elements of a sample's targets.
struct GaussianNllTerm {
  const float *y, *t;
  int64_t targets, half;
  bool log_variance, full;
  double eps;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(y, 2 * targets);
    v.reads(t, targets);
  }
  DPT_HOST_DEVICE int64_t mean(int64_t k) const { return k + k / half * half; }
  DPT_HOST_DEVICE formula::GaussianTerm term(int64_t k) const {
    const int64_t i = mean(k);
    return formula::gaussian_nll(static_cast<double>(y[i]), static_cast<double>(y[i + half]),
                                 static_cast<double>(t[k]), log_variance, full, eps);
  }
  DPT_HOST_DEVICE double operator()(int64_t k) const { return term(k).value; }
};

// Count: the targets.
struct GaussianNllGradient {
  GaussianNllTerm term;
  const float* divisor;
  float* dy;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    term.touches(v);
    v.reads(divisor, 1);
    v.writes(dy, 2 * term.targets);
  }
  DPT_HOST_DEVICE void operator()(int64_t k) const {
    const formula::GaussianTerm found = term.term(k);
    const int64_t i = term.mean(k);
    put(dy[i], found.mean_slope / static_cast<double>(*divisor));
    put(dy[i + term.half], found.variance_slope / static_cast<double>(*divisor));
  }
};

// The term of a sample y[2, width].
struct CosineEmbeddingTerm {
  const float *y, *t;
  int64_t samples, width;
  double margin;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(y, 2 * samples * width);
    v.reads(t, samples);
  }
  DPT_HOST_DEVICE const float* sample(int64_t n) const { return y + 2 * n * width; }
  DPT_HOST_DEVICE double operator()(int64_t n) const {
    return formula::cosine_term(formula::angle_of(sample(n), width), static_cast<double>(t[n]),
                                margin)
        .value;
  }
};

// Count: the samples.
struct CosineEmbeddingGradient {
  CosineEmbeddingTerm term;
  const float* divisor;
  float* dy;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    term.touches(v);
    v.reads(divisor, 1);
    v.writes(dy, 2 * term.samples * term.width);
  }
  DPT_HOST_DEVICE void operator()(int64_t n) const {
    const float* const y = term.sample(n);
    float* const to = dy + 2 * n * term.width;
    const formula::Angle angle = formula::angle_of(y, term.width);
    const double slope =
        formula::cosine_term(angle, static_cast<double>(term.t[n]), term.margin).slope /
        static_cast<double>(*divisor);
    for (int64_t i = 0; i < term.width; ++i) {
      const double a = static_cast<double>(y[i]), b = static_cast<double>(y[term.width + i]);
      put(to[i], slope * formula::cosine_slope(angle, a, angle.a, b));
      put(to[term.width + i], slope * formula::cosine_slope(angle, b, angle.b, a));
    }
  }
};

// The term of a sample y[3, width].
struct TripletMarginTerm {
  const float* y;
  int64_t samples, width;
  formula::TripletSettings settings;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(y, 3 * samples * width);
  }
  DPT_HOST_DEVICE const float* sample(int64_t n) const { return y + 3 * n * width; }
  DPT_HOST_DEVICE double operator()(int64_t n) const {
    const double loss = formula::triplet_of(sample(n), width, settings).loss;
    return loss < 0 ? 0 : loss;
  }
};

// Count: the samples.
struct TripletMarginGradient {
  TripletMarginTerm term;
  const float* divisor;
  float* dy;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    term.touches(v);
    v.reads(divisor, 1);
    v.writes(dy, 3 * term.samples * term.width);
  }
  DPT_HOST_DEVICE void operator()(int64_t n) const {
    const float* const y = term.sample(n);
    float* const to = dy + 3 * n * term.width;
    const formula::Triplet triplet = formula::triplet_of(y, term.width, term.settings);
    for (int64_t i = 0; i < term.width; ++i) {
      formula::TripletSlopes slopes;
      if (!(triplet.loss < 0))
        slopes = formula::triplet_slopes(y, term.width, i, triplet, term.settings);
      put(to[i], slopes.anchor / static_cast<double>(*divisor));
      put(to[term.width + i], slopes.positive / static_cast<double>(*divisor));
      put(to[2 * term.width + i], slopes.negative / static_cast<double>(*divisor));
    }
  }
};

// The term of a sample y[times, classes] with labels[most]. A label that is no class, or the blank,
// gives 0 and sets state->bad.
struct CtcTerm {
  const float* y;
  const int32_t* labels;
  int64_t samples, times, classes, most;
  int64_t blank, ignore;
  bool zero_infinity, by_length;
  double* memory;   // `numbers` for each sample
  int64_t numbers;  // formula::ctc_loss_numbers() or ctc_slopes_numbers()
  StepState* state;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(y, samples * times * classes);
    v.reads(labels, samples * most);
    v.writes(memory, samples * numbers);
    v.reads(state, 1);
    v.writes(state, 1);
  }
  DPT_HOST_DEVICE double* memory_of(int64_t n) const { return memory + n * numbers; }
  DPT_HOST_DEVICE formula::CtcSample<float> sample(int64_t n) const {
    const int32_t* const its = labels + n * most;
    return {y + n * times * classes,
            times,
            classes,
            its,
            formula::ctc_length(its, most, ignore),
            blank};
  }
  DPT_HOST_DEVICE bool valid(const formula::CtcSample<float>& x) const {
    for (int64_t i = 0; i < x.length; ++i)
      if (x.labels[i] < 0 || x.labels[i] >= classes || x.labels[i] == blank) {
        state->bad = 1;
        return false;
      }
    return true;
  }
  DPT_HOST_DEVICE double factor(int64_t length) const {
    return by_length && length > 1 ? 1 / static_cast<double>(length) : 1;
  }
  DPT_HOST_DEVICE double operator()(int64_t n) const {
    const formula::CtcSample<float> x = sample(n);
    if (!valid(x)) return 0;
    const double loss = formula::ctc_loss(x, memory_of(n));
    return zero_infinity && loss == -formula::kNever ? 0 : loss * factor(x.length);
  }
};

// Count: the samples.
struct CtcGradient {
  CtcTerm term;
  const float* divisor;
  float* dy;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    term.touches(v);
    v.reads(divisor, 1);
    v.writes(dy, term.samples * term.times * term.classes);
  }
  DPT_HOST_DEVICE void operator()(int64_t n) const {
    const formula::CtcSample<float> x = term.sample(n);
    float* const to = dy + n * term.times * term.classes;
    if (term.valid(x)) {
      formula::ctc_slopes(x, term.factor(x.length) / static_cast<double>(*divisor),
                          term.zero_infinity, term.memory_of(n), to);
      return;
    }
    for (int64_t i = 0; i < term.times * term.classes; ++i) put(to[i], 0.0);
  }
};

using VectorLossKernels =
    KernelList<PartialSums<GaussianNllTerm>, GaussianNllGradient, PartialSums<CosineEmbeddingTerm>,
               CosineEmbeddingGradient, PartialSums<TripletMarginTerm>, TripletMarginGradient,
               PartialSums<CtcTerm>, CtcGradient>;

}  // namespace dpt::cuda
