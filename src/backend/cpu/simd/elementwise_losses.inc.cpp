// Pointwise losses, gaussian_nll_loss, and their slopes: the formulas of graph/formulas on vectors.
// Terms are summed in double.
#include "backend/cpu/simd/elementwise.h"
#include "backend/cpu/simd/lanes_math.h"
#include "graph/formulas/losses.h"

namespace dpt::DPT_ISA {
namespace {

// Reads weights that are repeated, a vector at a time.
struct Repeated {
  const float* w;
  size_t size, step, at = 0;
  [[gnu::always_inline]] explicit Repeated(const PointwiseLossArgs::Weights& of)
      : w(of.w), size(of.size), step(kLanes % of.size) {}
  [[gnu::always_inline]] Lanes next() {
    const Lanes out = load(w + at);
    at += step;
    if (at >= size) at -= size;
    return out;
  }
};

// Calls f(i, access, x, t, weight, positive) for each vector.
template <class F, class Visitor>
DPT_SIMD void each_element(const PointwiseLossArgs& args, Visitor f) {
  Repeated weight(args.weight), positive(args.positive);
  each_vector(
      args.n, [&](size_t i, auto at) __attribute__((always_inline)) {
        const Lanes w = F::kRow.weight ? weight.next() : Lanes(1);
        const Lanes p = F::kRow.pos_weight ? positive.next() : Lanes(1);
        f(i, at, at.get(args.x + i), at.get(args.t + i), w, p);
      });
}

// Sums n terms in 16 chains that a binary tree combines, in the same order on every instruction
// set.
struct Sum {
  size_t n;
  double chains[16] = {};
  // Adds those from i on.
  [[gnu::always_inline]] void add(size_t i, Lanes terms) {
    float each[kLanes];
    store(each, terms.v);
    const size_t count = n - i < kLanes ? n - i : kLanes, from = i % 16;
    if (count == kLanes) {
      for (size_t j = 0; j < kLanes; ++j) chains[from + j] += static_cast<double>(each[j]);
    } else {
      for (size_t j = 0; j < count; ++j) chains[from + j] += static_cast<double>(each[j]);
    }
  }
  [[gnu::always_inline]] double total() {
    for (int step = 8; step > 0; step /= 2)
      for (int j = 0; j < step; ++j) chains[j] += chains[j + step];
    return chains[0];
  }
};

template <class F>
double forward(const PointwiseLossArgs& args) {
  const F loss = *static_cast<const F*>(args.loss);
  Sum sum{args.n};
  each_element<F>(
      args, [&](size_t i, auto, Lanes x, Lanes t, Lanes w, Lanes p) __attribute__((always_inline)) {
        sum.add(i, formula::loss_term(loss, x, t, w, p));
      });
  return sum.total();
}

template <class F>
void backward(const PointwiseLossArgs& args, float* dx, float factor) {
  const F loss = *static_cast<const F*>(args.loss);
  const Lanes over = all(factor);
  each_element<F>(
      args, [&](size_t i, auto at, Lanes x, Lanes t, Lanes w, Lanes p) __attribute__((
                always_inline)) { at.put(dx + i, formula::loss_slope(loss, x, t, w, p) * over); });
}

// Calls f(k, term, at) for each vector of targets from k on; at[j] is the index of the mean of
// target k + j, which has its variance `half` elements later.
template <class Visitor>
DPT_SIMD void each_gaussian(const GaussianNllArgs& args, Visitor f) {
  const formula::GaussianNll loss = args.loss;
  size_t next = 0, of_sample = 0;
  each_vector(
      args.targets, [&](size_t k, auto access) __attribute__((always_inline)) {
        size_t at[kLanes];
        float mean[kLanes] = {}, output[kLanes] = {};
        for (size_t j = 0; j < kLanes && k + j < args.targets; ++j) {
          at[j] = next;
          mean[j] = args.y[next];
          output[j] = args.y[next + args.half];
          ++next;
          if (++of_sample < args.half) continue;
          next += args.half;
          of_sample = 0;
        }
        f(k, loss.term(Lanes(load(mean)), Lanes(load(output)), access.get(args.t + k)), at);
      });
}

double gaussian_nll(const GaussianNllArgs& args) {
  Sum sum{args.targets};
  each_gaussian(
      args, [&](size_t k, const formula::GaussianTerm<Lanes>& term, const size_t*)
                __attribute__((always_inline)) { sum.add(k, term.value); });
  return sum.total();
}

void gaussian_nll_gradient(const GaussianNllArgs& args, float* dy, float factor) {
  each_gaussian(
      args, [&](size_t k, const formula::GaussianTerm<Lanes>& term, const size_t* at)
                __attribute__((always_inline)) {
                  float mean[kLanes], output[kLanes];
                  store(mean, (term.mean_slope * Lanes(all(factor))).v);
                  store(output, (term.variance_slope * Lanes(all(factor))).v);
                  for (size_t j = 0; j < kLanes && k + j < args.targets; ++j) {
                    dy[at[j]] = mean[j];
                    dy[at[j] + args.half] = output[j];
                  }
                });
}

template <class... F>
void add_all(ElementwiseKernels& kernels, formula::FormulaList<F...>) {
  ((kernels.loss[formula::kLossOf<F>] = forward<F>), ...);
  ((kernels.loss_gradient[formula::kLossOf<F>] = backward<F>), ...);
}

}  // namespace

void add_pointwise_losses(ElementwiseKernels& kernels) {
  add_all(kernels, formula::PointwiseLosses{});
  kernels.gaussian_nll = gaussian_nll;
  kernels.gaussian_nll_gradient = gaussian_nll_gradient;
}

}  // namespace dpt::DPT_ISA
