// Elementwise losses, nll_loss, and counts of correct predictions. A loss is summed in double; its
// gradient is divided by the divisor (Note [divisor] in layers/loss.h).
#pragma once

#include "backend/cuda/kernels/softmax.h"
#include "backend/cuda/kernels/step_state.h"
#include "graph/formulas/losses.h"

namespace dpt::cuda {

// The term of element i of a formula of the table of pointwise losses. Weights w of elements, and p
// of positive targets, are repeated for each sample; null: 1.
template <class F>
struct PointTerm {
  F f;
  const float *x, *t, *w, *p;
  int64_t count, w_count, p_count;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(x, count);
    v.reads(t, count);
    if (w) v.reads(w, w_count);
    if (p) v.reads(p, p_count);
  }
  DPT_HOST_DEVICE double weight(const float* of, int64_t n, int64_t i) const {
    return of ? static_cast<double>(of[i % n]) : 1;
  }
  DPT_HOST_DEVICE double operator()(int64_t i) const {
    return formula::loss_term(f, static_cast<double>(x[i]), static_cast<double>(t[i]),
                              weight(w, w_count, i), weight(p, p_count, i));
  }
  DPT_HOST_DEVICE double slope(int64_t i) const {
    return formula::loss_slope(f, static_cast<double>(x[i]), static_cast<double>(t[i]),
                               weight(w, w_count, i), weight(p, p_count, i));
  }
};

template <class F>
struct PointGradient {
  PointTerm<F> term;
  const float* divisor;
  float* dx;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    term.touches(v);
    v.reads(divisor, 1);
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    put(dx[i], term.slope(i) / static_cast<double>(*divisor));
  }
};

// The loss of each position with a class: -w[y] * x[y], with the factor of focal_loss if there is a
// gamma, or w[y] if x is null (target_weight). For an invalid class it is 0 and state->bad is set.
struct ClassTerm {
  Lines lines;  // extent 0: every class is valid
  const float* x;
  const int32_t* classes;
  const float* weight;  // [C]; null: 1
  int64_t ignore;
  StepState* state;
  double gamma = 0;
  template <class Visitor>
  void touches(Visitor& v) const {
    if (x) v.reads(x, lines.elements());
    v.reads(classes, lines.count);
    if (weight) v.reads(weight, lines.extent);
    v.reads(state, 1);
    v.writes(state, 1);
  }
  DPT_HOST_DEVICE bool counts(int64_t line) const {
    const int64_t y = classes[line];
    if (y == ignore || lines.extent == 0) return y != ignore;
    if (y >= 0 && y < lines.extent) return true;
    state->bad = 1;
    return false;
  }
  DPT_HOST_DEVICE double weight_of(int64_t line) const {
    return weight ? static_cast<double>(weight[classes[line]]) : 1;
  }
  DPT_HOST_DEVICE double operator()(int64_t line) const {
    if (!counts(line)) return 0;
    if (!x) return weight_of(line);
    return weight_of(line) *
           formula::focal(static_cast<double>(x[lines.at(line, classes[line])]), gamma);
  }
};

struct NllGradient {
  ClassTerm term;  // its x is read if it has a gamma
  const float* divisor;
  float* dx;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    term.touches(v);
    v.reads(divisor, 1);
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const Lines& l = term.lines;
    const int64_t line = i / (l.extent * l.inner) * l.inner + i % l.inner;
    const int64_t c = i / l.inner % l.extent;
    const bool mine = term.counts(line) && term.classes[line] == c;
    const double slope = !mine || term.gamma == 0
                             ? -1
                             : formula::focal_slope(static_cast<double>(term.x[i]), term.gamma);
    put(dx[i], mine ? term.weight_of(line) * slope / static_cast<double>(*divisor) : 0.0);
  }
};

// The multi_margin_loss of each sample. The order of sums is that of graph/operators/losses/
// multi_margin_loss.cpp. `classes` is used for its targets and weights, not for its own term.
struct MultiMarginTerm {
  ClassTerm classes;
  int p;
  double margin;
  int64_t most = 1;   // labels of a sample
  bool list = false;  // they end at the first negative one
  template <class Visitor>
  void touches(Visitor& v) const {
    classes.touches(v);
    v.reads(classes.classes, classes.lines.count * most);
  }
  // The number of labels of a sample; 0 if one is no class.
  DPT_HOST_DEVICE int64_t count(int64_t line) const {
    if (!list) return classes.counts(line) ? 1 : 0;
    for (int64_t k = 0; k < most; ++k) {
      if (label(line, k) < 0) return k;
      if (label(line, k) < classes.lines.extent) continue;
      classes.state->bad = 1;
      return 0;
    }
    return most;
  }
  DPT_HOST_DEVICE int64_t label(int64_t line, int64_t k) const {
    return classes.classes[line * most + k];
  }
  DPT_HOST_DEVICE double factor(int64_t y) const {
    return (classes.weight ? static_cast<double>(classes.weight[y]) : 1) /
           static_cast<double>(classes.lines.extent);
  }
  // 0: class c is one of the n labels, or further away from label y than the margin.
  DPT_HOST_DEVICE double violation(int64_t line, int64_t n, int64_t y, int64_t c) const {
    const float* x = classes.x + line * classes.lines.extent;
    const double z = margin - static_cast<double>(x[y]) + static_cast<double>(x[c]);
    if (!(z > 0)) return 0;
    for (int64_t k = 0; k < n; ++k)
      if (label(line, k) == c) return 0;
    return z;
  }
  DPT_HOST_DEVICE double operator()(int64_t line) const {
    const int64_t n = count(line);
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t y = label(line, k);
      const double by = factor(y);
      for (int64_t c = 0; c < classes.lines.extent; ++c) {
        const double z = violation(line, n, y, c);
        sum += by * (p == 1 ? z : z * z);
      }
    }
    return sum;
  }
};

struct MultiMarginGradient {
  MultiMarginTerm term;
  const float* divisor;
  float* dx;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    term.touches(v);
    v.reads(divisor, 1);
    v.writes(dx, count);
  }
  DPT_HOST_DEVICE double slope(int64_t line, int64_t n, int64_t y, int64_t c) const {
    const double z = term.violation(line, n, y, c);
    return z > 0 ? term.factor(y) * (term.p == 1 ? 1 : 2 * z) / static_cast<double>(*divisor) : 0;
  }
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t extent = term.classes.lines.extent, line = i / extent, c = i % extent;
    const int64_t n = term.count(line);
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t y = term.label(line, k);
      if (y != c) sum += slope(line, n, y, c);
      for (int64_t other = 0; y == c && other < extent; ++other) sum -= slope(line, n, y, other);
    }
    put(dx[i], sum);
  }
};

// 1 if the argmax of a position is its class and the class is not ignored. Argmax is the first nan,
// or the first of equal maxima.
struct CorrectTerm {
  Lines lines;
  const float* x;
  const int32_t* classes;
  int64_t ignore;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(x, lines.elements());
    v.reads(classes, lines.count);
  }
  DPT_HOST_DEVICE double operator()(int64_t line) const {
    int64_t best = 0;
    float most = x[lines.at(line, 0)];
    for (int64_t c = 1; c < lines.extent && most == most; ++c) {
      const float v = x[lines.at(line, c)];
      if (v <= most) continue;  // false for a nan
      best = c;
      most = v;
    }
    return correct(line, best) ? 1 : 0;
  }
  DPT_HOST_DEVICE bool correct(int64_t line, int64_t best) const {
    return best == classes[line] && classes[line] != ignore;
  }
};

// terms[line] = CorrectTerm of the line. A block computes one line.
struct CorrectLines {
  static constexpr int kThreads = 256;
  struct Shared {
    float most[kThreads];
    int64_t at[kThreads];
  };
  CorrectTerm term;
  double* terms;
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    term.touches(v);
    v.writes(terms, count);
  }
  // Whether argmax takes v at index i rather than w at index j.
  DPT_HOST_DEVICE static bool first(float v, int64_t i, float w, int64_t j) {
    if (v != v) return w == w || i < j;
    return v > w || (v == w && i < j);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t line = block.index();
    block.phase([&](int t, Shared& s) {
      float most = -INFINITY;
      int64_t at = term.lines.extent;  // behind every element
      for (int64_t c = t; c < term.lines.extent; c += kThreads) {
        const float v = term.x[term.lines.at(line, c)];
        if (!first(v, c, most, at)) continue;
        most = v;
        at = c;
      }
      s.most[t] = most;
      s.at[t] = at;
    });
    for (int half = kThreads / 2; half > 0; half /= 2)
      block.phase([&](int t, Shared& s) {
        if (t >= half || !first(s.most[t + half], s.at[t + half], s.most[t], s.at[t])) return;
        s.most[t] = s.most[t + half];
        s.at[t] = s.at[t + half];
      });
    block.phase([&](int t, Shared& s) {
      if (t == 0) terms[line] = term.correct(line, s.at[0]) ? 1 : 0;
    });
  }
};

namespace detail {
template <class... F>
KernelList<PartialSums<PointTerm<F>>..., PointGradient<F>..., PartialSums<ClassTerm>, NllGradient,
           PartialSums<CorrectTerm>, CorrectLines, PartialSums<MultiMarginTerm>,
           MultiMarginGradient>
    loss_kernels_of(formula::FormulaList<F...>);
}
using LossKernels = decltype(detail::loss_kernels_of(formula::PointwiseLosses{}));

}  // namespace dpt::cuda
