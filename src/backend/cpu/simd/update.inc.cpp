// The optimizers. Gradients of all shards are summed tile by tile, and the formula is applied while
// the tile is in L1. The formulas are those of graph/formulas/optimizers.h. Compilers vectorize the
// loops here (except Adam's, which uses Lanes), for which the flags of a formula have to be
// constants: those of sgd, Adam and RMSprop, which have loops of their own.
#include "backend/cpu/simd/roots.h"
#include "backend/cpu/simd/shards.h"
#include "backend/cpu/simd/tables.h"
#include "base/units.h"
#include "graph/formulas/average.h"
#include "graph/formulas/optimizers.h"

namespace dpt::DPT_ISA {
namespace {

struct Yes {
  static constexpr bool value = true;
};
struct No {
  static constexpr bool value = false;
};

// Calls f with a type in which the flag is a constant.
template <class F>
DPT_SIMD void with_flag(bool flag, F f) {
  if (flag) {
    f(Yes{});
  } else {
    f(No{});
  }
}

// Prepares PyTorch's .grad of the tile [offset, offset + count), in `g` or where it already is, and
// returns its address.
DPT_SIMD const float* prepare_gradient(const UpdateArgs& args, size_t offset, size_t count,
                                       float* g) {
  if (args.shard_count == 1 && args.grad_scale == 1 && !(args.clip_value > 0) &&
      args.sum_out == nullptr)
    return args.shards[0] + (offset - args.first);
  sum_shards(g, args.shards, args.shard_count, offset - args.first, count);
  if (args.grad_scale != 1) {
    for (size_t i = 0; i < count; ++i) g[i] *= args.grad_scale;
  }
  if (const float limit = args.clip_value; limit > 0) {
    for (size_t i = 0; i < count; ++i) {
      const float low = g[i] < -limit ? -limit : g[i];  // a nan remains a nan, as in torch.clamp
      g[i] = low > limit ? limit : low;
    }
  }
  if (args.sum_out != nullptr)
    __builtin_memcpy(args.sum_out + offset - args.first, g, count * sizeof(float));
  return g;
}

// Calls apply(weight, states..., gradient, count) for each tile. The arrays do not overlap.
template <class Apply>
DPT_SIMD void for_each_tile(const UpdateArgs& args, Apply apply) {
  alignas(64) float gradient[kShardTile];
  for (size_t i = args.begin, count; i < args.end; i += count) {
    count = args.end - i < kShardTile ? args.end - i : kShardTile;
    const float* const g = prepare_gradient(args, i, count, gradient);
    const auto state = [&](int s) __attribute__((always_inline)) {
      return args.state[s] != nullptr ? args.state[s] + i : nullptr;
    };
    apply(args.weight + i, state(0), state(1), state(2), g, count);
  }
}

template <bool kMomentum>
DPT_SIMD void sgd_loop(const formula::Sgd<float>& s, float* __restrict w, float* __restrict b,
                       const float* __restrict g, size_t count) {
  for (size_t i = 0; i < count; ++i) formula::sgd(s, w[i], kMomentum ? b + i : nullptr, g[i]);
}

void update(const UpdateArgs& args, const formula::Sgd<float>& scalars) {
  for_each_tile(
      args, [&](float* w, float* b, float*, float*, const float* g, size_t count)
                __attribute__((always_inline)) {
                  formula::Sgd<float> s = scalars;
                  if (s.momentum == 0) {
                    sgd_loop<false>(s, w, b, g, count);
                    return;
                  }
                  with_flag(
                      s.first_step, [&](auto first) __attribute__((always_inline)) {
                        s.first_step = first.value;
                        with_flag(
                            s.nesterov, [&](auto nesterov) __attribute__((always_inline)) {
                              s.nesterov = nesterov.value;
                              sgd_loop<true>(s, w, b, g, count);
                            });
                      });
                });
}

// formula::adam on Lanes, with the square roots of roots.h. The operations are the same and in the
// same order, so the bits are those of the formula.
template <bool kAmsgrad>
[[gnu::noinline]] void adam_loop(formula::Adam<float> s, float* __restrict w, float* __restrict m,
                                 float* __restrict v, float* __restrict top,
                                 const float* __restrict g, size_t count) {
  s.amsgrad = kAmsgrad;
  const auto scalar = [](float x) __attribute__((always_inline)) { return Lanes(all(x)); };
  const Lanes keep = scalar(s.keep), decay = scalar(s.weight_decay),
              one_minus_beta1 = scalar(s.one_minus_beta1), beta2 = scalar(s.beta2),
              one_minus_beta2 = scalar(s.one_minus_beta2), step_size = scalar(s.step_size),
              correction = scalar(s.inverse_correction), eps = scalar(s.eps);
  constexpr size_t kAhead = 32 * kCacheLine;  // a line may take a fifth of a microsecond to come
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    own_line(w + i, kAhead);
    const Lanes weight = Lanes(load(w + i)) * keep;
    Lanes gradient = load(g + i);
    if (s.maximize) gradient = -gradient;
    if (s.weight_decay != 0) gradient = gradient + decay * weight;
    Lanes mean = load(m + i), square = load(v + i);
    mean = mean + one_minus_beta1 * (gradient - mean);
    square = square * beta2 + one_minus_beta2 * gradient * gradient;
    store(m + i, mean.v);
    store(v + i, square.v);
    if constexpr (kAmsgrad) {
      const Lanes before = load(top + i);
      square = select(square < before, before, square);
      store(top + i, square.v);
    }
    const Lanes denominator = square_root(square) * correction + eps;
    store(w + i, (weight - step_size * mean / denominator).v);
  }
  for (; i < count; ++i) formula::adam(s, w[i], m[i], v[i], kAmsgrad ? top + i : nullptr, g[i]);
}

void update(const UpdateArgs& args, const formula::Adam<float>& scalars) {
  for_each_tile(
      args, [&](float* w, float* m, float* v, float* top, const float* g, size_t count)
                __attribute__((always_inline)) {
                  if (scalars.amsgrad) {
                    adam_loop<true>(scalars, w, m, v, top, g, count);
                  } else {
                    adam_loop<false>(scalars, w, m, v, nullptr, g, count);
                  }
                });
}

template <bool kCentered, bool kMomentum>
[[gnu::noinline]] void rms_prop_loop(formula::RmsProp<float> s, float* __restrict w,
                                     float* __restrict square, float* __restrict buffer,
                                     float* __restrict mean, const float* __restrict g,
                                     size_t count) {
  s.centered = kCentered;
  if (!kMomentum) s.momentum = 0;
  for (size_t i = 0; i < count; ++i)
    formula::rms_prop(s, w[i], square[i], kMomentum ? buffer + i : nullptr,
                      kCentered ? mean + i : nullptr, g[i]);
}

void update(const UpdateArgs& args, const formula::RmsProp<float>& s) {
  for_each_tile(
      args, [&](float* w, float* square, float* buffer, float* mean, const float* g, size_t count)
                __attribute__((always_inline)) {
                  with_flag(
                      s.centered, [&](auto centered) __attribute__((always_inline)) {
                        with_flag(
                            s.momentum > 0, [&](auto momentum) __attribute__((always_inline)) {
                              rms_prop_loop<centered.value, momentum.value>(s, w, square, buffer,
                                                                            mean, g, count);
                            });
                      });
                });
}

// Any other formula. REQUIRES: it uses all of its states.
template <class Formula>
[[gnu::noinline]] void loop(Formula s, float* __restrict w, float* __restrict a,
                            float* __restrict b, float* __restrict c, const float* __restrict g,
                            size_t count) {
  for (size_t i = 0; i < count; ++i) {
    float* const state[] = {Formula::kStates > 0 ? a + i : nullptr,
                            Formula::kStates > 1 ? b + i : nullptr,
                            Formula::kStates > 2 ? c + i : nullptr};
    formula::update(s, w[i], state, g[i]);
  }
}

template <class Formula>
void update(const UpdateArgs& args, const Formula& s) {
  for_each_tile(
      args, [&](float* w, float* a, float* b, float* c, const float* g, size_t count)
                __attribute__((always_inline)) { loop(s, w, a, b, c, g, count); });
}

template <class Formula>
void update_by(const UpdateArgs& args, const void* formula) {
  update(args, *static_cast<const Formula*>(formula));
}

template <template <class> class... F>
const SimdKernels::Update* updates_of(formula::OptimizerList<F...>) {
  static constexpr SimdKernels::Update kUpdates[] = {update_by<F<float>>...};
  return kUpdates;
}

void average(float* __restrict average, const float* __restrict weight, float rate, size_t count) {
  for (size_t i = 0; i < count; ++i) average[i] = formula::lerp(average[i], weight[i], rate);
}

}  // namespace

void add_updates(SimdKernels& kernels) {
  kernels.updates = updates_of(formula::Optimizers{});
  kernels.average = average;
}

}  // namespace dpt::DPT_ISA
