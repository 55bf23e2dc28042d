// The end of a step: gradient norms, the loss scale, the optimizers. Kernels read what changes
// between steps from GPU memory (step_state.h) and use the formulas of graph/.
#pragma once

#include "backend/cuda/kernels/step_state.h"
#include "backend/cuda/kernels/sums.h"
#include "graph/formulas/average.h"
#include "graph/formulas/optimizers.h"
#include "graph/formulas/scaler.h"

namespace dpt::cuda {

// x|^power, for norms. power 0: |x|, for the maximum norm.
struct PowerTerm {
  const float* x;
  double power;
  int64_t elements;
  template <class Visitor>
  void touches(Visitor& v) const {
    v.reads(x, elements);
  }
  DPT_HOST_DEVICE double operator()(int64_t i) const {
    const double a = ::fabs(static_cast<double>(x[i]));
    return power == 2 ? a * a : power == 0 || power == 1 ? a : ::pow(a, power);
  }
};

// Runs before the gradients are used. Computes the loss of all micro-batches and the norm of the
// unscaled gradients; decides whether the gradients are used and how they are scaled; writes the
// report to the host and the state of the next step. Count: 1.
struct DecideUpdate {
  const double* losses;  // [micro_batches]
  int64_t micro_batches;
  const double* norm_partial;  // of all gradients; null: the norm is not needed
  StepState* state;
  const int64_t* first_update;  // the first update for which the launch's table has a formula
  StepReport* report;
  double norm_type;         // 0: maximum norm
  double max_norm;          // 0: no clipping
  bool scales;              // the loss is scaled; steps with non-finite gradients are skipped
  formula::ScaleRule rule;  // of the loss scale
  // A divisor of 0 means that all targets are ignored. The loss is then nan, the gradients are 0,
  // and the optimizer still makes its update.
  bool takes_empty = false;
  DPT_HOST_DEVICE static bool finite(double x) { return x - x == 0; }
  DPT_HOST_DEVICE void operator()(int64_t) const {
    state->loss = 0;
    for (int64_t m = 0; m < micro_batches; ++m) state->loss += losses[m];
    const bool empty = takes_empty && state->divisor == 0;
    const bool no_number = !empty && !finite(state->loss);
    if (no_number && !scales) state->halted = 1;
    bool skip = no_number || state->halted;
    double clip = 1;
    state->norm = 0;
    if (norm_partial) {
      const double p = *norm_partial;
      const double root = norm_type == 2 ? ::sqrt(p) : norm_type > 1 ? ::pow(p, 1 / norm_type) : p;
      state->norm = root / state->loss_scale;
      skip = skip || (scales && !finite(state->norm));
      if (max_norm > 0) clip = max_norm / (state->norm + 1e-6);
      if (clip > 1) clip = 1;
    }
    state->grad_scale = clip / state->loss_scale;
    state->skip = skip ? 1 : 0;
    state->formula = state->updates - *first_update;
    state->updates += skip ? 0 : 1;
    *report = {.loss = state->loss,
               .divisor = state->divisor,
               .norm = state->norm,
               .skip = state->skip,
               .bad = state->bad,
               .first_loss = 0,
               .first_weight = 0};
    if (scales) formula::update_scale(rule, skip, state->loss_scale, state->growth_tracker);
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(losses, micro_batches);
    if (norm_partial) v.reads(norm_partial, 1);
    v.reads(first_update, 1);
    v.reads(state, 1);
    v.writes(state, 1);
    v.writes(report, 1);
  }
};

// Copies the decision of another GPU, whose state was copied to `judged`, to this GPU's state and
// report. `bad` remains this GPU's own. Count: 1.
struct ApplyDecision {
  const StepState* decided;
  StepState* state;
  StepReport* report;
  DPT_HOST_DEVICE void operator()(int64_t) const {
    state->divisor = decided->divisor;
    state->loss_scale = decided->loss_scale;
    state->loss = decided->loss;
    state->grad_scale = decided->grad_scale;
    state->norm = decided->norm;
    state->updates = decided->updates;
    state->formula = decided->formula;
    state->growth_tracker = decided->growth_tracker;
    state->skip = decided->skip;
    state->halted = decided->halted;
    *report = {decided->loss, decided->divisor,    decided->norm,        decided->skip,
               state->bad,    decided->first_loss, decided->first_weight};
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(decided, 1);
    v.reads(state, 1);
    v.writes(state, 1);
    v.writes(report, 1);
  }
};

// Adds the loss of rank 0's own rows to the report. Launch it after DecideUpdate. Count: 1.
struct ReportFirst {
  const double *losses, *weights;
  int64_t losses_count, weights_count;
  StepState* state;
  StepReport* report;
  DPT_HOST_DEVICE void operator()(int64_t) const {
    double loss = 0, weight = 0;
    for (int64_t i = 0; i < losses_count; ++i) loss += losses[i];
    for (int64_t i = 0; i < weights_count; ++i) weight += weights[i];
    report->first_loss = state->first_loss = loss;
    report->first_weight = state->first_weight = weight;
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(losses, losses_count);
    v.reads(weights, weights_count);
    v.reads(state, 1);
    v.writes(state, 1);
    v.reads(report, 1);
    v.writes(report, 1);
  }
};

// Sums the gradients of shards in the fixed tree order (comm/tree.h). Shard s is at x + s * stride.
struct SumShards {
  float* x;  // the sum is stored in shard 0's place
  int64_t stride;
  int shards;
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    for (int step = 1; step < shards; step *= 2)
      for (int s = 0; s + step < shards; s += 2 * step)
        x[s * stride + i] += x[(s + step) * stride + i];
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    for (int s = 0; s < shards; ++s) {
      v.reads(x + s * stride, count);
      v.writes(x + s * stride, count);
    }
  }
};

// x += more: adds the gradients of a later micro-batch.
struct AddTo {
  float* x;
  const float* more;
  DPT_HOST_DEVICE void operator()(int64_t i) const { x[i] += more[i]; }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(x, count);
    v.reads(more, count);
    v.writes(x, count);
  }
};

// half: 0: none, 1: bf16, 2: f16.
DPT_HOST_DEVICE inline float rounded_to(int half, float x) {
  return half == 1 ? from_bf16(to_bf16(x)) : half == 2 ? from_f16(to_f16(x)) : x;
}

// What all optimizers share: scaling and clipping of gradients, and rounding of weights if the
// model is kept in a half.
struct UpdateBuffers {
  const StepState* state;
  float* weight;
  float* states[3];  // null: the formula does not use it
  const float* gradient;
  float clip_value;  // 0: no clipping
  int half;          // 0: none, 1: bf16, 2: f16
  DPT_HOST_DEVICE float gradient_at(int64_t i) const {
    const auto scale = static_cast<float>(state->grad_scale);
    float g = scale == 1 ? gradient[i] : gradient[i] * scale;
    if (clip_value > 0) {
      const float low = g < -clip_value ? -clip_value : g;  // a nan remains a nan
      g = low > clip_value ? clip_value : low;
    }
    return g;
  }
  DPT_HOST_DEVICE void store(int64_t i, float w) const { weight[i] = rounded_to(half, w); }
  DPT_HOST_DEVICE float* state_at(int s, int64_t i) const {
    return states[s] ? states[s] + i : nullptr;
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(state, 1);
    v.reads(weight, count);
    v.writes(weight, count);
    v.reads(gradient, count);
    for (float* s : states)
      if (s) {
        v.reads(s, count);
        v.writes(s, count);
      }
  }
};

// One element of an optimizer update. Formula: formula::Sgd<float> etc.
template <class Formula>
struct Update {
  // [formula_count]; this step's has the index state->formula * stride: the formulas of other
  // parameter groups lie between those of consecutive updates.
  const Formula* formulas;
  int64_t formula_count;
  UpdateBuffers buffers;
  int64_t stride = 1;
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    if (buffers.state->skip) return;
    float w = buffers.weight[i];
    float* const states[] = {buffers.state_at(0, i), buffers.state_at(1, i),
                             buffers.state_at(2, i)};
    formula::update(formulas[buffers.state->formula * stride], w, states, buffers.gradient_at(i));
    buffers.store(i, w);
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(formulas, formula_count);
    buffers.touches(v, count);
  }
};

// Averages of weights after an update. Launch it after Update.
struct Average {
  const StepState* state;
  float* average;
  const float* weight;
  double decay;
  int half;  // the type of the model, as in UpdateBuffers
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    if (state->skip) return;
    const auto rate = formula::average_rate<float>(decay, state->updates == 1);
    average[i] = rounded_to(half, formula::lerp(average[i], weight[i], rate));
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(state, 1);
    v.reads(weight, count);
    v.reads(average, count);
    v.writes(average, count);
  }
};

// Exchanges the elements of two arrays.
struct SwapElements {
  float *a, *b;
  DPT_HOST_DEVICE void operator()(int64_t i) const {
    const float x = a[i];
    a[i] = b[i];
    b[i] = x;
  }
  template <class Visitor>
  void touches(Visitor& v, int64_t count) const {
    v.reads(a, count);
    v.writes(a, count);
    v.reads(b, count);
    v.writes(b, count);
  }
};

namespace detail {
template <template <class> class... F>
KernelList<PartialSums<PowerTerm>, PartialSums<PowerTerm, Larger>, DecideUpdate, ApplyDecision,
           ReportFirst, SumShards, AddTo, Average, SwapElements, Update<F<float>>...>
    update_kernels_of(formula::OptimizerList<F...>);
}
using UpdateKernels = decltype(detail::update_kernels_of(formula::Optimizers{}));

}  // namespace dpt::cuda
