// Hand-written kernels of ctc_loss for one CPU core (graph/formulas/ctc.h). The rules of simd.h
// apply.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/simd/isa.h"
#include "backend/cpu/simd/simd.h"

namespace dpt {

// The states of an alignment are blank, label, blank, label, ..., blank; a row has a logarithm for
// each. The state s of a row is row[kCtcBefore + s]; -inf stands before the first one.
inline constexpr size_t kCtcBefore = 16;
// Floats of a row for this number of states.
constexpr size_t ctc_row(size_t states) { return kCtcBefore + (states + 15) / 16 * 16; }

// The rows of one sample in one direction: alpha from the first time on, beta from the last one.
struct CtcRows {
  const float* scores;  // [times, classes], from the first time
  const float* norm;    // [times]: log(sum of e^score)
  size_t times, classes, states;
  bool reversed;         // from the last time on
  const int32_t* label;  // [states], in the order of the direction
  const float* skip;     // ctc_row(states): 0 where a state follows the one two before it, or -inf
  float* rows;           // [times, ctc_row(states)], in the order of the direction
  double* offset;        // [times]: what was subtracted from each row's logarithms
};

struct CtcKernels {
  // norm[t] for each time.
  void (*norms)(const float* scores, float* norm, size_t times, size_t classes);
  void (*rows)(const CtcRows& args);
  // share[s] = e^(alpha[s] + beta[states - 1 - s] - (score[s] - norm) + shift).
  void (*shares)(const float* alpha, const float* beta, const float* score, float* share,
                 size_t states, float norm, float shift);
  // out[c] = (e^(score[c] - norm) - share[c]) * factor.
  void (*slopes)(const float* scores, const float* share, float* out, size_t classes, float norm,
                 float factor);
};

// REQUIRES: this CPU has the instruction set.
const CtcKernels& ctc_simd(Isa isa);

DPT_FOR_EACH_ISA(void add_ctc(CtcKernels& kernels))

}  // namespace dpt
