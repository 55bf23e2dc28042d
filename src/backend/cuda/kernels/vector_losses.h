// Losses of outputs that hold several vectors or a sequence for each sample. The formulas are those
// of the CPU; a loss is summed in double, and its gradient is divided by the divisor (Note
// [divisor] in layers/loss.h).
#pragma once

#include "backend/cuda/kernels/step_state.h"
#include "backend/cuda/kernels/sums.h"
#include "graph/formulas/ctc.h"
#include "graph/formulas/losses/gaussian_nll.h"
#include "graph/formulas/vector_losses.h"

namespace dpt::cuda {

// The term of target k. half: elements of a sample's targets.
struct GaussianNllTerm {
  const float *y, *t;
  int64_t targets, half;
  formula::GaussianNll loss;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(y, 2 * targets);
    v.reads(t, targets);
  }
  DPT_HOST_DEVICE int64_t mean(int64_t k) const { return k + k / half * half; }
  DPT_HOST_DEVICE formula::GaussianTerm<double> term(int64_t k) const {
    const int64_t i = mean(k);
    return loss.term(static_cast<double>(y[i]), static_cast<double>(y[i + half]),
                     static_cast<double>(t[k]));
  }
  DPT_HOST_DEVICE double operator()(int64_t k) const { return term(k).value; }
  int64_t outputs() const { return 2 * targets; }
  DPT_HOST_DEVICE void slopes(int64_t k, double divisor, float* dy) const {
    const formula::GaussianTerm<double> found = term(k);
    const int64_t i = mean(k);
    put(dy[i], found.mean_slope / divisor);
    put(dy[i + half], found.variance_slope / divisor);
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
  int64_t outputs() const { return 2 * samples * width; }
  DPT_HOST_DEVICE void slopes(int64_t n, double divisor, float* dy) const {
    const float* const its = sample(n);
    float* const to = dy + 2 * n * width;
    const formula::Angle angle = formula::angle_of(its, width);
    const double slope =
        formula::cosine_term(angle, static_cast<double>(t[n]), margin).slope / divisor;
    for (int64_t i = 0; i < width; ++i) {
      const double a = static_cast<double>(its[i]), b = static_cast<double>(its[width + i]);
      put(to[i], slope * formula::cosine_slope(angle, a, angle.a, b));
      put(to[width + i], slope * formula::cosine_slope(angle, b, angle.b, a));
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
  int64_t outputs() const { return 3 * samples * width; }
  DPT_HOST_DEVICE void slopes(int64_t n, double divisor, float* dy) const {
    const float* const its = sample(n);
    float* const to = dy + 3 * n * width;
    const formula::Triplet triplet = formula::triplet_of(its, width, settings);
    for (int64_t i = 0; i < width; ++i) {
      formula::TripletSlopes found;
      if (!(triplet.loss <= 0)) found = formula::triplet_slopes(its, width, i, triplet, settings);
      put(to[i], found.anchor / divisor);
      put(to[width + i], found.positive / divisor);
      put(to[2 * width + i], found.negative / divisor);
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
    if (formula::ctc_wrong_label(x) == x.length) return true;
    state->bad = 1;
    return false;
  }
  DPT_HOST_DEVICE double operator()(int64_t n) const {
    const formula::CtcSample<float> x = sample(n);
    if (!valid(x)) return 0;
    const double loss = formula::ctc_loss(x, memory_of(n));
    return zero_infinity && loss == -formula::kNever
               ? 0
               : loss * formula::ctc_factor(x.length, by_length);
  }
  int64_t outputs() const { return samples * times * classes; }
  DPT_HOST_DEVICE void slopes(int64_t n, double divisor, float* dy) const {
    const formula::CtcSample<float> x = sample(n);
    float* const to = dy + n * times * classes;
    if (valid(x)) {
      formula::ctc_slopes(x, formula::ctc_factor(x.length, by_length) / divisor, zero_infinity,
                          memory_of(n), to);
      return;
    }
    for (int64_t i = 0; i < times * classes; ++i) put(to[i], 0.0);
  }
};

// Probabilities p[lines, inner] of the channels of samples, with targets t of that shape or
// classes[samples, inner]. A class that is no channel counts as none and sets state->bad.
struct DiceInput {
  const float *p, *t;
  const int32_t* classes;
  int64_t lines, channels, inner;
  StepState* state;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(p, lines * inner);
    if (t) v.reads(t, lines * inner);
    if (classes) v.reads(classes, lines / channels * inner);
    v.reads(state, 1);
    v.writes(state, 1);
  }
  DPT_HOST_DEVICE double target(int64_t line, int64_t i) const {
    if (t) return static_cast<double>(t[line * inner + i]);
    const int64_t y = classes[line / channels * inner + i];
    if (y < 0 || y >= channels) state->bad = 1;
    return y == line % channels ? 1 : 0;
  }
};

// sums[line] = the Overlap of the line, which a block computes.
struct DiceSums {
  static constexpr int kThreads = 256;
  DiceInput in;
  formula::Overlap* sums;
  struct Shared {
    double both[kThreads], all[kThreads];
  };
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    in.touches(v);
    v.writes(sums, count);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t line = block.index();
    block.phase([&](int t, Shared& s) {
      formula::Overlap own;
      for (int64_t i = t; i < in.inner; i += kThreads)
        formula::add(own, static_cast<double>(in.p[line * in.inner + i]), in.target(line, i));
      s.both[t] = own.both;
      s.all[t] = own.all;
    });
    combine<kThreads>(block, [](Shared& s) { return s.both; });
    combine<kThreads>(block, [](Shared& s) { return s.all; });
    block.phase([&](int t, Shared& s) {
      if (t == 0) sums[line] = {s.both[0], s.all[0]};
    });
  }
};

// The term of a line.
struct DiceTerm {
  const formula::Overlap* sums;
  int64_t lines;
  double smooth, share;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(sums, lines);
  }
  DPT_HOST_DEVICE double operator()(int64_t line) const {
    return share * formula::dice(sums[line], smooth);
  }
};

// Count: the elements.
struct DiceGradient {
  DiceInput in;
  const formula::Overlap* sums;
  double smooth, share;
  const float* divisor;
  float* dp;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    in.touches(v);
    v.reads(sums, in.lines);
    v.reads(divisor, 1);
    v.writes(dp, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t line = i / in.inner;
    put(dp[i], share / static_cast<double>(*divisor) *
                   formula::dice_slope(sums[line], in.target(line, i % in.inner), smooth));
  }
};

// The gradient of a loss whose term has outputs(), how many elements dy has, and slopes(). Count:
// the terms.
template <class Term>
struct VectorLossGradient {
  Term term;
  const float* divisor;
  float* dy;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    term.touches(v);
    v.reads(divisor, 1);
    v.writes(dy, term.outputs());
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    term.slopes(i, static_cast<double>(*divisor), dy);
  }
};

using VectorLossKernels =
    KernelList<PartialSums<GaussianNllTerm>, VectorLossGradient<GaussianNllTerm>,
               PartialSums<CosineEmbeddingTerm>, VectorLossGradient<CosineEmbeddingTerm>,
               PartialSums<TripletMarginTerm>, VectorLossGradient<TripletMarginTerm>,
               PartialSums<CtcTerm>, VectorLossGradient<CtcTerm>, DiceSums, PartialSums<DiceTerm>,
               DiceGradient>;

}  // namespace dpt::cuda
