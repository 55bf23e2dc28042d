// ctc_loss on vectors of states.
#include "backend/cpu/simd/ctc.h"

#include "backend/cpu/simd/lanes_math.h"

namespace dpt::DPT_ISA {
namespace {

void norms(const float* scores, float* norm, size_t times, size_t classes) {
  for (size_t t = 0; t < times; ++t, scores += classes) {
    const float top = top_of(scores, classes);
    Lanes sum = zero();
    each_vector(
        classes, [&](size_t c, auto at) __attribute__((always_inline)) {
          sum += exp(at.or_lowest(at.get(scores + c)) - all(top));
        });
    float each[kLanes];
    store(each, log(Lanes(all(sum_of(sum)))).v);
    norm[t] = top + each[0];
  }
}

// log(e^a + e^b + e^c); -inf is the logarithm of 0.
DPT_SIMD Lanes log_sum(Lanes a, Lanes b, Lanes c) {
  const Lanes most = max(a, max(b, c));
  const Lanes top = select(most == -infinity(), zero(), most);
  return top + log(exp(a - top) + exp(b - top) + exp(c - top));
}

// The first row: only the first two states can begin.
DPT_SIMD void first_row(float* row, size_t states) {
  for (size_t s = 0; s < states; ++s) row[s] = s < 2 ? 0 : -__builtin_inff();
}

DPT_SIMD void next_row(const CtcRows& a, const float* before, float* row) {
  for (size_t s = 0; s < a.states; s += kLanes) {
    const Lanes two = load(before + s - 2), skip = load(a.skip + kCtcBefore + s);
    store(row + s, log_sum(load(before + s), load(before + s - 1), two + skip).v);
  }
}

// Adds the states' scores, and takes the largest logarithm off, which it returns.
DPT_SIMD float add_scores(const CtcRows& a, size_t t, float* row) {
  const float* const scores = a.scores + t * a.classes;
  float top = -__builtin_inff();
  for (size_t s = 0; s < a.states; ++s) {
    row[s] += scores[a.label[s]] - a.norm[t];
    if (!(row[s] <= top)) top = row[s];  // a nan is the largest
  }
  if (top == -__builtin_inff()) return 0;
  each_vector(
      a.states, [&](size_t s, auto at) __attribute__((always_inline)) {
        at.put(row + s, at.get(row + s) - all(top));
      });
  return top;
}

void rows(const CtcRows& a) {
  const size_t size = ctc_row(a.states);
  double offset = 0;
  for (size_t step = 0; step < a.times; ++step) {
    float* const all_of = a.rows + step * size;
    float* const row = all_of + kCtcBefore;
    for (size_t i = 0; i < kCtcBefore; ++i) all_of[i] = -__builtin_inff();
    if (step == 0)
      first_row(row, a.states);
    else
      next_row(a, row - size, row);
    offset += static_cast<double>(add_scores(a, a.reversed ? a.times - 1 - step : step, row));
    for (size_t s = a.states; s < size - kCtcBefore; ++s) row[s] = -__builtin_inff();
    a.offset[step] = offset;
  }
}

void shares(const float* alpha, const float* beta, const float* score, float* share, size_t states,
            float norm, float shift) {
  for (size_t s = 0; s < states; ++s) share[s] = beta[states - 1 - s];
  each_vector(
      states, [&](size_t s, auto at) __attribute__((always_inline)) {
        const Lanes p = at.get(score + s) - all(norm);
        at.put(share + s, exp(at.get(alpha + s) + at.get(share + s) - p + all(shift)));
      });
}

void slopes(const float* scores, const float* share, float* out, size_t classes, float norm,
            float factor) {
  each_vector(
      classes, [&](size_t c, auto at) __attribute__((always_inline)) {
        const Lanes p = exp(at.get(scores + c) - all(norm));
        at.put(out + c, (p - at.get(share + c)) * all(factor));
      });
}

}  // namespace

void add_ctc(CtcKernels& kernels) {
  kernels.norms = norms;
  kernels.rows = rows;
  kernels.shares = shares;
  kernels.slopes = slopes;
}

}  // namespace dpt::DPT_ISA
