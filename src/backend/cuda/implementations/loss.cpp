// The GPU implementations of softmax, of losses and of counts of correct predictions.
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/losses.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

Lines lines_along(const Shape& s, int dim) {
  int64_t inner = 1, outer = 1;
  for (int i = 0; i < s.rank(); ++i) (i < dim ? outer : inner) *= i == dim ? 1 : s[i];
  return {.extent = s[dim], .inner = inner, .count = outer * inner};
}

template <bool kLog>
std::unique_ptr<Kernel> softmax(const KernelQuery& q) {
  const Lines lines = lines_along(q.in[0].shape, settings<Softmax>(q).dim);
  if (!is_gradient(q))
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream,
             SoftmaxLines{
                 .lines = lines, .x = at<float>(a.in[0]), .y = at<float>(a.out[0]), .log = kLog},
             lines.count);
    });
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    launch(c.stream,
           SoftmaxGradient{.lines = lines,
                           .y = at<float>(a.in[0]),
                           .dy = at<float>(a.in[1]),
                           .dx = at<float>(a.out[0]),
                           .log = kLog},
           lines.count);
  });
}

// The first result becomes the sum of `partial` [partials], divided by *divisor unless that is
// null.
void total_terms(const KernelArgs& a, DeviceContext& c, const double* partial, int64_t partials,
                 const float* divisor) {
  launch(c.stream,
         Total{.partial = partial,
               .divisor = divisor,
               .total = at<double>(a.out[0]),
               .partials = partials},
         1);
}

// The same for `terms` terms.
template <class Term>
void sum_terms(const KernelArgs& a, DeviceContext& c, const Term& term, int64_t terms,
               const float* divisor) {
  auto* partial = reinterpret_cast<double*>(c.workspace);
  const int64_t blocks = PartialSums<Term>::blocks(terms);
  launch(c.stream, PartialSums<Term>{term, partial, terms}, blocks);
  total_terms(a, c, partial, blocks, divisor);
}
void reserve_terms(int64_t terms) {
  DeviceContext::current().reserve(sizeof(double) *
                                   static_cast<size_t>(PartialSums<ClassTerm>::blocks(terms)));
}

template <class F>
std::unique_ptr<Kernel> pointwise(const KernelQuery& q) {
  const int64_t n = count(q.in[0]);
  const F f = settings<F>(q);
  const formula::LossWeights weights = formula::weights_of(f, q.in.size());
  const auto term = [=](const KernelArgs& a) {
    const auto weight = [&](size_t i) { return i > 0 ? at<float>(a.in[i]) : nullptr; };
    const auto size = [&](size_t i) { return i > 0 ? count(a.in[i].desc) : 0; };
    return PointTerm<F>{.f = f,
                        .x = at<float>(a.in[0]),
                        .t = at<float>(a.in[1]),
                        .w = weight(weights.element),
                        .p = weight(weights.positive),
                        .count = n,
                        .w_count = size(weights.element),
                        .p_count = size(weights.positive)};
  };
  if (is_gradient(q))
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, PointGradient<F>{term(a), at<float>(a.in[2]), at<float>(a.out[0])}, n);
    });
  reserve_terms(n);
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    sum_terms(a, c, term(a), n, at<float>(a.in[2]));
  });
}

template <class... F>
void add_pointwise(std::vector<KernelType>& out, formula::FormulaList<F...>) {
  const auto add = [&]<class L>(L) {
    out.push_back(own(L::kRow.name, not_f32, pointwise<L>));
    out.push_back(own(L::kRow.gradient, not_f32, pointwise<L>));
  };
  (add(F{}), ...);
}

std::unique_ptr<Kernel> cross_entropy(const KernelQuery& q) {
  const auto s = settings<CrossEntropy>(q);
  const Lines lines = lines_along(q.in[0].shape, s.dim);
  const bool classes = q.in[1].dtype == DType::i32;
  const auto weights = [=](const KernelArgs& a) {
    return ClassWeights{.classes = classes ? at<int32_t>(a.in[1]) : nullptr,
                        .probabilities = classes ? nullptr : at<float>(a.in[1]),
                        .weight = at_or_null<float>(a.in, 3),
                        .ignore = s.ignore_index,
                        .smoothing = s.label_smoothing};
  };
  if (is_gradient(q))
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream,
             CrossEntropyGradient{.lines = lines,
                                  .x = at<float>(a.in[0]),
                                  .weights = weights(a),
                                  .divisor = at<float>(a.in[2]),
                                  .dx = at<float>(a.out[0])},
             lines.count);
    });
  DeviceContext::current().reserve(sizeof(double) * static_cast<size_t>(lines.count));
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    auto* terms = reinterpret_cast<double*>(c.workspace);
    launch(c.stream,
           CrossEntropyTerms{.lines = lines,
                             .x = at<float>(a.in[0]),
                             .weights = weights(a),
                             .terms = terms,
                             .state = c.state},
           lines.count);
    total_terms(a, c, terms, lines.count, at<float>(a.in[2]));
  });
}

std::unique_ptr<Kernel> nll(const KernelQuery& q) {
  const auto s = settings<NllLoss>(q);
  const Lines lines = lines_along(q.in[0].shape, s.dim);
  const int64_t ignore = s.ignore_index, n = count(q.in[0]);
  const auto term = [=](const KernelArgs& a, DeviceContext& c) {
    return ClassTerm{.lines = lines,
                     .x = at<float>(a.in[0]),
                     .classes = at<int32_t>(a.in[1]),
                     .weight = at_or_null<float>(a.in, 3),
                     .ignore = ignore,
                     .state = c.state,
                     .gamma = s.gamma};
  };
  if (is_gradient(q))
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(
          c.stream,
          NllGradient{.term = term(a, c), .divisor = at<float>(a.in[2]), .dx = at<float>(a.out[0])},
          n);
    });
  reserve_terms(lines.count);
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    sum_terms(a, c, term(a, c), lines.count, at<float>(a.in[2]));
  });
}

std::unique_ptr<Kernel> multi_margin(const KernelQuery& q) {
  const auto s = settings<MultiMargin>(q);
  const Lines lines = lines_along(q.in[0].shape, 1);
  const bool list = q.in[1].shape.rank() == 2;
  const auto term = [=](const KernelArgs& a, DeviceContext& c) {
    constexpr int64_t kNone = -1;  // no target is ignored
    return MultiMarginTerm{.classes = {.lines = lines,
                                       .x = at<float>(a.in[0]),
                                       .classes = at<int32_t>(a.in[1]),
                                       .weight = at_or_null<float>(a.in, 3),
                                       .ignore = kNone,
                                       .state = c.state},
                           .p = s.p,
                           .margin = s.margin,
                           .most = list ? lines.extent : 1,
                           .list = list};
  };
  if (is_gradient(q))
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream, MultiMarginGradient{term(a, c), at<float>(a.in[2]), at<float>(a.out[0])},
             lines.elements());
    });
  reserve_terms(lines.count);
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    sum_terms(a, c, term(a, c), lines.count, at<float>(a.in[2]));
  });
}

std::unique_ptr<Kernel> target_weight(const KernelQuery& q) {
  const int64_t classes = q.in.size() > 1 ? count(q.in[1]) : 0, n = count(q.in[0]);
  const int64_t ignore = settings<NllLoss>(q).ignore_index;
  reserve_terms(n);
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    const ClassTerm term{.lines = {.extent = classes, .inner = 1, .count = n},
                         .x = nullptr,
                         .classes = at<int32_t>(a.in[0]),
                         .weight = at_or_null<float>(a.in, 1),
                         .ignore = ignore,
                         .state = c.state};
    sum_terms(a, c, term, n, nullptr);
  });
}

// Short lines, and lines that fill a GPU with a thread each, are read by a thread each: along an
// inner dimension, neighboring threads then read neighboring elements. Otherwise a block reads a
// line.
bool thread_per_line(const Lines& lines) {
  constexpr int64_t kShort = 64, kMany = 1 << 19;
  return lines.extent < kShort || lines.count >= kMany;
}

std::unique_ptr<Kernel> count_correct(const KernelQuery& q) {
  const auto s = settings<CountCorrect>(q);
  const Lines lines = lines_along(q.in[0].shape, s.dim);
  const auto term = [=](const KernelArgs& a) {
    return CorrectTerm{.lines = lines,
                       .x = at<float>(a.in[0]),
                       .classes = at<int32_t>(a.in[1]),
                       .ignore = s.ignore_index};
  };
  if (thread_per_line(lines)) {
    reserve_terms(lines.count);
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      sum_terms(a, c, term(a), lines.count, nullptr);
    });
  }
  DeviceContext::current().reserve(sizeof(double) * static_cast<size_t>(lines.count));
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    auto* terms = reinterpret_cast<double*>(c.workspace);
    launch(c.stream, CorrectLines{.term = term(a), .terms = terms}, lines.count);
    total_terms(a, c, terms, lines.count, nullptr);
  });
}

}  // namespace

std::vector<KernelType> loss_rows() {
  std::vector<KernelType> out;
  add_pointwise(out, formula::PointwiseLosses{});
  const auto both = [&](std::string_view op, std::string_view gradient, auto prepare) {
    out.push_back(own(op, not_f32, prepare));
    out.push_back(own(gradient, not_f32, prepare));
  };
  both("softmax", "softmax_gradient", softmax<false>);
  both("log_softmax", "log_softmax_gradient", softmax<true>);
  both("multi_margin_loss", "multi_margin_loss_gradient", multi_margin);
  both("cross_entropy", "cross_entropy_gradient", cross_entropy);
  both("nll_loss", "nll_loss_gradient", nll);
  out.push_back(own("target_weight", not_f32, target_weight));
  out.push_back(own("count_correct", not_f32, count_correct));
  return out;
}

}  // namespace dpt::cuda
