// Connectionist temporal classification (Graves et al., 2006) of one sample, in double.
//
// With the labels z = blank, z1, blank, z2, ..., blank and the log-probabilities p[t, c]:
//   alpha[t, s] = p[t, z_s] + log(e^alpha[t-1, s] + e^alpha[t-1, s-1] + e^alpha[t-1, s-2]), the
//   last term only if z_s is no blank and not z_(s-2); beta is the same from the end, and loss =
//   -log(sum over s of e^(alpha[t, s] + beta[t, s] - p[t, z_s])), for any t.
#pragma once

#include <cstdint>

#include "graph/formulas/math.h"

namespace dpt::formula {

inline constexpr double kNever = -__builtin_huge_val();  // the logarithm of 0

DPT_FORMULA double log_add(double a, double b) {
  const double most = a > b ? a : b, least = a > b ? b : a;
  return most == kNever ? kNever : most + log1p(exp(least - most));
}

// T: float or double. The sample owns nothing.
template <class T>
struct CtcSample {
  const T* scores;  // [times, classes]
  int64_t times, classes;
  const int32_t* labels;  // the first `length` count
  int64_t length;
  int64_t blank;
};

template <class T>
DPT_FORMULA int64_t ctc_states(const CtcSample<T>& x) {
  return 2 * x.length + 1;
}
template <class T>
DPT_FORMULA int64_t ctc_label(const CtcSample<T>& x, int64_t state) {
  return state % 2 == 0 ? x.blank : x.labels[state / 2];
}
template <class T>
DPT_FORMULA double ctc_score(const CtcSample<T>& x, int64_t t, int64_t c) {
  return static_cast<double>(x.scores[t * x.classes + c]);
}

// The logarithm of the sum of e^score over the classes of a time: p[t, c] = score - this.
template <class T>
DPT_FORMULA double ctc_norm(const CtcSample<T>& x, int64_t t) {
  double most = ctc_score(x, t, 0), sum = 0;
  for (int64_t c = 1; c < x.classes; ++c)
    if (ctc_score(x, t, c) > most) most = ctc_score(x, t, c);
  for (int64_t c = 0; c < x.classes; ++c) sum += exp(ctc_score(x, t, c) - most);
  return most + log(sum);
}

// Row `step` of alpha, [states], from the row before it; or, `reversed`, of beta, whose rows and
// states count from the end. `norm` is that of its time.
template <class T>
DPT_FORMULA void ctc_row(const CtcSample<T>& x, bool reversed, int64_t step, double norm,
                         const double* before, double* out) {
  const int64_t t = reversed ? x.times - 1 - step : step;
  const int64_t last = ctc_states(x) - 1;
  for (int64_t s = 0; s <= last; ++s) {
    const int64_t z = ctc_label(x, reversed ? last - s : s);
    double sum = step == 0 && s < 2 ? 0 : kNever;
    if (step > 0) {
      sum = before[s];
      if (s > 0) sum = log_add(sum, before[s - 1]);
      if (s > 1 && s % 2 == 1 && z != ctc_label(x, reversed ? last - s + 2 : s - 2))
        sum = log_add(sum, before[s - 2]);
    }
    out[s] = sum + ctc_score(x, t, z) - norm;
  }
}

// The loss, from the last row of alpha.
template <class T>
DPT_FORMULA double ctc_end(const CtcSample<T>& x, const double* row) {
  const int64_t last = ctc_states(x) - 1;
  return -log_add(row[last], last > 0 ? row[last - 1] : kNever);
}

// How many of `most` labels stand before the first `ignore`.
DPT_FORMULA int64_t ctc_length(const int32_t* labels, int64_t most, int64_t ignore) {
  int64_t out = 0;
  while (out < most && labels[out] != ignore) ++out;
  return out;
}

// The first of the sample's labels that is no class, or the blank; `length` if there is none.
template <class T>
DPT_FORMULA int64_t ctc_wrong_label(const CtcSample<T>& x) {
  int64_t i = 0;
  while (i < x.length && x.labels[i] >= 0 && x.labels[i] < x.classes && x.labels[i] != x.blank) ++i;
  return i;
}

// What a sample's loss is multiplied by.
DPT_FORMULA double ctc_factor(int64_t length, bool by_length) {
  return by_length && length > 1 ? 1 / static_cast<double>(length) : 1;
}

// Numbers of double that ctc_loss and ctc_slopes need for a sample with at most `most` labels.
DPT_FORMULA int64_t ctc_loss_numbers(int64_t most) { return 2 * (2 * most + 1); }
DPT_FORMULA int64_t ctc_slopes_numbers(int64_t most, int64_t times) {
  return times * (2 * most + 1) + 2 * (2 * most + 1);
}

// memory: ctc_loss_numbers().
template <class T>
DPT_FORMULA double ctc_loss(const CtcSample<T>& x, double* memory) {
  const int64_t states = ctc_states(x);
  for (int64_t t = 0; t < x.times; ++t)
    ctc_row(x, false, t, ctc_norm(x, t), memory + (t + 1) % 2 * states, memory + t % 2 * states);
  return ctc_end(x, memory + (x.times - 1) % 2 * states);
}

// Writes d loss / d score times `factor` to out[times, classes]. `zero`: 0 where the loss is
// infinite. memory: ctc_slopes_numbers().
template <class T>
DPT_FORMULA void ctc_slopes(const CtcSample<T>& x, double factor, bool zero, double* memory,
                            T* out) {
  const int64_t states = ctc_states(x), last = x.times - 1;
  double* const beta = memory + x.times * states;  // two rows
  for (int64_t t = 0; t <= last; ++t)
    ctc_row(x, false, t, ctc_norm(x, t), memory + (t > 0 ? t - 1 : 0) * states,
            memory + t * states);
  const double loss = ctc_end(x, memory + last * states);
  for (int64_t t = last; t >= 0; --t) {
    const int64_t step = last - t;
    const double norm = ctc_norm(x, t);
    double* const row = beta + step % 2 * states;
    ctc_row(x, true, step, norm, beta + (step + 1) % 2 * states, row);
    for (int64_t c = 0; c < x.classes; ++c) {
      const double p = ctc_score(x, t, c) - norm;
      double share = 0;  // of the alignments that have the class at this time
      for (int64_t s = 0; s < states; ++s)
        if (ctc_label(x, s) == c)
          share += exp(memory[t * states + s] + row[states - 1 - s] - p + loss);
      out[t * x.classes + c] =
          static_cast<T>(zero && loss == -kNever ? 0.0 : (exp(p) - share) * factor);
    }
  }
}

}  // namespace dpt::formula
