// softmax, log_softmax and cross entropy. A block computes one line: the elements along the
// dimension of the softmax. Sums are in double. Formulas: graph/operators/activations/softmax.cpp,
// log_softmax.cpp, graph/operators/losses/cross_entropy.cpp.
#pragma once

#include "backend/cuda/kernels/step_state.h"
#include "backend/cuda/kernels/sums.h"

namespace dpt::cuda {

// The lines along one dimension. Element e of line outer * inner + i is at (outer * extent + e) *
// inner + i.
struct Lines {
  int64_t extent, inner, count;
  DPT_HOST_DEVICE int64_t at(int64_t line, int64_t e) const {
    return (line / inner * extent + e) * inner + line % inner;
  }
  DPT_HOST_DEVICE int64_t elements() const { return count * extent; }
};

inline constexpr int kLineThreads = 128;

// Computes a line's largest element (s.top) and the sum of exp(x - largest) (s.total).
struct LineShared {
  double sum[kLineThreads], top, total;
};
template <class Block>
DPT_HOST_DEVICE void top_and_total(Block& block, const Lines& lines, const float* x) {
  const int64_t line = block.index();
  block.phase([&](int t, LineShared& s) {
    double top = -INFINITY;
    for (int64_t e = t; e < lines.extent; e += kLineThreads)
      top = Larger{}(top, static_cast<double>(x[lines.at(line, e)]));
    s.sum[t] = top;
  });
  combine<kLineThreads>(
      block, [](LineShared& s) { return s.sum; }, Larger{});
  block.phase([&](int t, LineShared& s) {
    if (t == 0) s.top = s.sum[0];
  });
  block.phase([&](int t, LineShared& s) {
    double sum = 0;
    for (int64_t e = t; e < lines.extent; e += kLineThreads)
      sum += ::exp(static_cast<double>(x[lines.at(line, e)]) - s.top);
    s.sum[t] = sum;
  });
  combine<kLineThreads>(block, [](LineShared& s) { return s.sum; });
  block.phase([&](int t, LineShared& s) {
    if (t == 0) s.total = s.sum[0];
  });
}

struct SoftmaxLines {
  static constexpr int kThreads = kLineThreads;
  using Shared = LineShared;
  Lines lines;
  const float* x;
  float* y;
  bool log;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(x, lines.elements());
    v.writes(y, lines.elements());
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    top_and_total(block, lines, x);
    block.phase([&](int t, Shared& s) {
      for (int64_t e = t; e < lines.extent; e += kThreads) {
        const int64_t i = lines.at(block.index(), e);
        const double below = static_cast<double>(x[i]) - s.top;
        put(y[i], log ? below - ::log(s.total) : ::exp(below) / s.total);
      }
    });
  }
};

// softmax: dx = y * (dy - sum(y * dy)); log_softmax: dx = dy - exp(y) * sum(dy).
struct SoftmaxGradient {
  static constexpr int kThreads = kLineThreads;
  struct Shared {
    double sum[kThreads];
  };
  Lines lines;
  const float *y, *dy;
  float* dx;
  bool log;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(y, lines.elements());
    v.reads(dy, lines.elements());
    v.writes(dx, lines.elements());
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    block.phase([&](int t, Shared& s) {
      double sum = 0;
      for (int64_t e = t; e < lines.extent; e += kThreads) {
        const int64_t i = lines.at(block.index(), e);
        const double up = static_cast<double>(dy[i]);
        sum += log ? up : static_cast<double>(y[i]) * up;
      }
      s.sum[t] = sum;
    });
    combine<kThreads>(block, [](Shared& s) { return s.sum; });
    block.phase([&](int t, Shared& s) {
      for (int64_t e = t; e < lines.extent; e += kThreads) {
        const int64_t i = lines.at(block.index(), e);
        const double v = static_cast<double>(y[i]), up = static_cast<double>(dy[i]);
        put(dx[i], log ? up - ::exp(v) * s.sum[0] : v * (up - s.sum[0]));
      }
    });
  }
};

// The weights q of -log_softmax at one position (graph/operators/losses/cross_entropy.cpp).
struct ClassWeights {
  const int32_t* classes;  // null: the targets are probabilities
  const float* probabilities;
  const float* weight;  // [C]; null: 1
  int64_t ignore;
  double smoothing;
  template <class Visitor>
  void touches(const Lines& lines, Visitor& v) const {
    if (classes) v.reads(classes, lines.count);
    if (probabilities) v.reads(probabilities, lines.elements());
    if (weight) v.reads(weight, lines.extent);
  }
  // 0: the position counts; 1: its class is ignored; 2: its class is invalid.
  DPT_HOST_DEVICE int skips(const Lines& lines, int64_t line) const {
    if (!classes) return 0;
    const int64_t y = classes[line];
    if (y == ignore) return 1;
    return y < 0 || y >= lines.extent ? 2 : 0;
  }
  DPT_HOST_DEVICE double q(const Lines& lines, int64_t line, int64_t c) const {
    const double w = weight ? static_cast<double>(weight[c]) : 1;
    const double even = smoothing / static_cast<double>(lines.extent);
    if (classes) return w * even + (classes[line] == c ? (1 - smoothing) * w : 0);
    const double p = static_cast<double>(probabilities[lines.at(line, c)]);
    return w * (p * (1 - smoothing) + even);
  }
};

// terms[line] = sum(-q * log_softmax). For an invalid class it is 0 and state->bad is set.
struct CrossEntropyTerms {
  static constexpr int kThreads = kLineThreads;
  using Shared = LineShared;
  Lines lines;
  const float* x;
  ClassWeights weights;
  double* terms;
  StepState* state;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(x, lines.elements());
    weights.touches(lines, v);
    v.writes(terms, lines.count);
    v.reads(state, 1);
    v.writes(state, 1);
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t line = block.index();
    const int skips = weights.skips(lines, line);
    top_and_total(block, lines, x);
    block.phase([&](int t, Shared& s) {
      double sum = 0;
      for (int64_t e = t; skips == 0 && e < lines.extent; e += kThreads) {
        const double q = weights.q(lines, line, e);
        const double v = static_cast<double>(x[lines.at(line, e)]);
        if (q != 0) sum -= q * (v - s.top - ::log(s.total));  // define 0 * -inf as 0
      }
      s.sum[t] = sum;
      if (t == 0 && skips == 2) state->bad = 1;
    });
    combine<kThreads>(block, [](Shared& s) { return s.sum; });
    block.phase([&](int t, Shared& s) {
      if (t == 0) terms[line] = s.sum[0];
    });
  }
};

// dx = (softmax * sum(q) - q) / divisor.
struct CrossEntropyGradient {
  static constexpr int kThreads = kLineThreads;
  using Shared = LineShared;
  Lines lines;
  const float* x;
  ClassWeights weights;
  const float* divisor;
  float* dx;
  template <class Visitor>
  void touches(Visitor& v, int64_t) const {
    v.reads(x, lines.elements());
    weights.touches(lines, v);
    v.reads(divisor, 1);
    v.writes(dx, lines.elements());
  }
  template <class Block>
  DPT_HOST_DEVICE void operator()(Block& block) const {
    const int64_t line = block.index();
    const bool counts = weights.skips(lines, line) == 0;
    top_and_total(block, lines, x);
    block.phase([&](int t, Shared& s) {
      double sum = 0;
      for (int64_t e = t; counts && e < lines.extent; e += kThreads)
        sum += weights.q(lines, line, e);
      s.sum[t] = sum;
    });
    combine<kThreads>(block, [](Shared& s) { return s.sum; });
    block.phase([&](int t, Shared& s) {
      for (int64_t e = t; e < lines.extent; e += kThreads) {
        const int64_t i = lines.at(line, e);
        const double p = ::exp(static_cast<double>(x[i]) - s.top - ::log(s.total));
        const double d = p * s.sum[0] - weights.q(lines, line, e);
        put(dx[i], counts ? d / static_cast<double>(*divisor) : 0.0);
      }
    });
  }
};

using SoftmaxKernels =
    KernelList<SoftmaxLines, SoftmaxGradient, CrossEntropyTerms, CrossEntropyGradient>;

}  // namespace dpt::cuda
