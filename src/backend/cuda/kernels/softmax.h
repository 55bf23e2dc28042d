// softmax, log_softmax and cross entropy. A block computes one line: the elements along the
// dimension of the softmax. Formulas: graph/operators/activations/softmax.cpp, log_softmax.cpp,
// graph/operators/losses/cross_entropy.cpp.
//
// Note [exp sums]: the largest element of a line and the sum of exp(x - largest) are found in one
// pass (Milakov and Gimelshein 2018). Exponentials are in float, with an error of at most 2 units
// in the last place; groups of 4 are added in float, and groups in double. So the sum has a
// relative error of about 4e-7, a logarithm or a loss an absolute error of the same size, and a
// probability a relative error of about 6e-7. PyTorch computes both in float.
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

struct LargerFloat {
  DPT_HOST_DEVICE float operator()(float a, float b) const { return a > b ? a : b; }
};

// Elements that were read: the largest one, and the sum of exp(x - largest). With a nan, or with
// inf, the sum is nan.
struct ExpSum {
  static constexpr int kGroup = 4;
  float top = -INFINITY;
  double sum = 0;
  // The factor of a sum that refers to `top` if it is to refer to `larger`.
  DPT_HOST_DEVICE static float factor(float top, float larger) {
    return top == larger ? 1.0F : ::expf(top - larger);
  }
  DPT_HOST_DEVICE void add(const float (&x)[kGroup]) {
    float larger = top;
    for (const float v : x) larger = LargerFloat{}(v, larger);  // a nan is never larger
    sum *= static_cast<double>(factor(top, larger));
    top = larger;
    const float from = top == -INFINITY ? 0.0F : top;  // exp(-inf - 0) is 0
    float group = 0;
    for (const float v : x) group += ::expf(v - from);
    sum += static_cast<double>(group);
  }
};

struct LineShared {
  double sum[kLineThreads], total;
  float tops[kLineThreads], top;
};
template <class Block>
DPT_HOST_DEVICE void combine_sums(Block& block) {
  combine<kLineThreads>(block, [](LineShared& s) { return s.sum; });
}

// Computes a line's largest element (s.top) and the sum of exp(x - largest) (s.total). Also calls
// each(thread, e, x) for each element e.
template <class Block, class Each>
DPT_HOST_DEVICE void exp_sum(Block& block, const Lines& lines, const float* x, Each each) {
  constexpr int kGroup = ExpSum::kGroup;
  constexpr int64_t kStep = int64_t{kGroup} * kLineThreads;
  const float* const line = x + lines.at(block.index(), 0);
  auto top = block.template per_thread<float>();
  block.phase([&](int t, LineShared& s) {
    ExpSum found;
    for (int64_t first = t; first < lines.extent; first += kStep) {
      float group[kGroup];
      for (int k = 0; k < kGroup; ++k) {
        const int64_t e = first + int64_t{k} * kLineThreads;
        group[k] = e < lines.extent ? line[e * lines.inner] : -INFINITY;
        if (e < lines.extent) each(t, e, group[k]);
      }
      found.add(group);
    }
    top[t] = s.tops[t] = found.top;
    s.sum[t] = found.sum;
  });
  combine<kLineThreads>(
      block, [](LineShared& s) { return s.tops; }, LargerFloat{});
  block.phase([&](int t, LineShared& s) {
    s.sum[t] *= static_cast<double>(ExpSum::factor(top[t], s.tops[0]));
  });
  combine_sums(block);
  block.phase([&](int t, LineShared& s) {
    if (t == 0) s.total = s.sum[0], s.top = s.tops[0];
  });
}
template <class Block>
DPT_HOST_DEVICE void exp_sum(Block& block, const Lines& lines, const float* x) {
  exp_sum(block, lines, x, [](int, int64_t, float) {});
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
    exp_sum(block, lines, x);
    block.phase([&](int t, Shared& s) {
      const auto number = static_cast<float>(log ? ::log(s.total) : 1 / s.total);
      const float top = s.top;
      const int64_t first = lines.at(block.index(), 0);
      for (int64_t e = t; e < lines.extent; e += kThreads) {
        const int64_t i = first + e * lines.inner;
        const float below = x[i] - top;
        put(y[i], log ? below - number : ::expf(below) * number);
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
        put(dx[i], log ? up - static_cast<double>(::expf(y[i])) * s.sum[0] : v * (up - s.sum[0]));
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
  // Whether only the weight of the position's class is not 0; else q() says all weights.
  DPT_HOST_DEVICE bool one_class() const { return classes && smoothing == 0; }
  DPT_HOST_DEVICE double of_class(int64_t line) const {
    return weight ? static_cast<double>(weight[classes[line]]) : 1;
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
    if (weights.one_class()) {
      exp_sum(block, lines, x);
      block.phase([&](int t, Shared& s) {
        if (t == 0) terms[line] = skips == 0 ? term_of_class(line, s) : 0;
      });
    } else {
      add_all_classes(block, line, skips);
    }
    block.phase([&](int t, Shared&) {
      if (t == 0 && skips == 2) state->bad = 1;
    });
  }

 private:
  DPT_HOST_DEVICE double term_of_class(int64_t line, const Shared& s) const {
    const double q = weights.of_class(line);
    if (q == 0) return 0;  // define 0 * -inf as 0
    const double below =
        static_cast<double>(s.top) - static_cast<double>(x[lines.at(line, weights.classes[line])]);
    return q * (below + ::log(s.total));
  }
  template <class Block>
  DPT_HOST_DEVICE void add_all_classes(Block& block, int64_t line, int skips) const {
    auto qs = block.template per_thread<double>(), products = block.template per_thread<double>();
    exp_sum(block, lines, x, [&](int t, int64_t c, float v) {
      const double q = skips == 0 ? weights.q(lines, line, c) : 0;
      qs[t] += q;
      if (q != 0) products[t] += q * static_cast<double>(v);
    });
    block.phase([&](int t, Shared& s) { s.sum[t] = qs[t]; });
    combine_sums(block);
    block.phase([&](int t, Shared& s) {
      const double q = s.sum[0];
      if (t == 0) terms[line] = q == 0 ? 0 : q * (static_cast<double>(s.top) + ::log(s.total));
    });
    block.phase([&](int t, Shared& s) { s.sum[t] = products[t]; });
    combine_sums(block);
    block.phase([&](int t, Shared& s) {
      if (t == 0) terms[line] -= s.sum[0];
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
    if (weights.skips(lines, line) != 0)
      block.phase([&](int t, Shared&) { write(t, line, [](float, int64_t) { return 0.0F; }); });
    else if (weights.one_class())
      write_of_class(block, line);
    else
      write_of_all(block, line);
  }

 private:
  // dx = slope(x, class) for each class of the line.
  template <class Slope>
  DPT_HOST_DEVICE void write(int t, int64_t line, Slope slope) const {
    const int64_t first = lines.at(line, 0);
    for (int64_t c = t; c < lines.extent; c += kThreads) {
      const int64_t i = first + c * lines.inner;
      put(dx[i], slope(x[i], c));
    }
  }
  template <class Block>
  DPT_HOST_DEVICE void write_of_class(Block& block, int64_t line) const {
    exp_sum(block, lines, x);
    block.phase([&](int t, Shared& s) {
      const int64_t y = weights.classes[line];
      const float top = s.top;
      const auto inverse = static_cast<float>(1 / s.total),
                 scale = static_cast<float>(weights.of_class(line) / static_cast<double>(*divisor));
      write(t, line, [&](float v, int64_t c) {
        return (::expf(v - top) * inverse - (c == y ? 1.0F : 0.0F)) * scale;
      });
    });
  }
  template <class Block>
  DPT_HOST_DEVICE void write_of_all(Block& block, int64_t line) const {
    auto qs = block.template per_thread<double>();
    exp_sum(block, lines, x, [&](int t, int64_t c, float) { qs[t] += weights.q(lines, line, c); });
    block.phase([&](int t, Shared& s) { s.sum[t] = qs[t]; });
    combine_sums(block);
    block.phase([&](int t, Shared& s) {
      const float top = s.top;
      const double q = s.sum[0] / s.total, inverse = 1 / static_cast<double>(*divisor);
      write(t, line, [&](float v, int64_t c) {
        return (static_cast<double>(::expf(v - top)) * q - weights.q(lines, line, c)) * inverse;
      });
    });
  }
};

using SoftmaxKernels =
    KernelList<SoftmaxLines, SoftmaxGradient, CrossEntropyTerms, CrossEntropyGradient>;

}  // namespace dpt::cuda
