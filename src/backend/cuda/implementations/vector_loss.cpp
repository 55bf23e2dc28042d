// The GPU implementations of losses of several vectors or a sequence for each sample.
#include <algorithm>

#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/implementations/support.h"
#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/basic.h"
#include "backend/cuda/kernels/vector_losses.h"
#include "graph/attrs.h"

namespace dpt::cuda {
namespace {

// The kernel of a loss, or of its gradient, over `terms` terms. term(args, context) makes the term;
// divisor: index of that input; more: bytes of the workspace behind the partial sums.
template <class Term, class F>
std::unique_ptr<Kernel> loss_of(const KernelQuery& q, int64_t terms, size_t divisor, F term,
                                size_t more = 0) {
  if (is_gradient(q)) {
    DeviceContext::current().reserve(more);
    return enqueue([=](const KernelArgs& a, DeviceContext& c) {
      launch(c.stream,
             VectorLossGradient<Term>{term(a, c, c.workspace), at<float>(a.in[divisor]),
                                      at<float>(a.out[0])},
             terms);
    });
  }
  const int64_t blocks = PartialSums<Term>::blocks(terms);
  const size_t sums = static_cast<size_t>(blocks) * sizeof(double);
  DeviceContext::current().reserve(sums + more);
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    auto* const partial = reinterpret_cast<double*>(c.workspace);
    launch(c.stream, PartialSums<Term>{term(a, c, c.workspace + sums), partial, terms}, blocks);
    launch(c.stream,
           Total{.partial = partial,
                 .divisor = at<float>(a.in[divisor]),
                 .total = at<double>(a.out[0]),
                 .partials = blocks},
           1);
  });
}

std::unique_ptr<Kernel> gaussian_nll(const KernelQuery& q) {
  const auto loss = settings<formula::GaussianNll>(q);
  const int64_t targets = count(q.in[1]);
  const int64_t half = targets / std::max<int64_t>(1, q.in[1].shape[0]);
  return loss_of<GaussianNllTerm>(q, targets, 2,
                                  [=](const KernelArgs& a, DeviceContext&, std::byte*) {
                                    return GaussianNllTerm{.y = at<float>(a.in[0]),
                                                           .t = at<float>(a.in[1]),
                                                           .targets = targets,
                                                           .half = half,
                                                           .loss = loss};
                                  });
}

std::unique_ptr<Kernel> cosine_embedding(const KernelQuery& q) {
  const Shape y = q.in[0].shape;
  const double margin = settings<CosineEmbedding>(q).margin;
  return loss_of<CosineEmbeddingTerm>(q, y[0], 2,
                                      [=](const KernelArgs& a, DeviceContext&, std::byte*) {
                                        return CosineEmbeddingTerm{.y = at<float>(a.in[0]),
                                                                   .t = at<float>(a.in[1]),
                                                                   .samples = y[0],
                                                                   .width = y[2],
                                                                   .margin = margin};
                                      });
}

std::unique_ptr<Kernel> triplet_margin(const KernelQuery& q) {
  const Shape y = q.in[0].shape;
  const auto s = settings<TripletMargin>(q);
  return loss_of<TripletMarginTerm>(
      q, y[0], 1, [=](const KernelArgs& a, DeviceContext&, std::byte*) {
        return TripletMarginTerm{
            .y = at<float>(a.in[0]),
            .samples = y[0],
            .width = y[2],
            .settings = {.margin = s.margin, .p = s.p, .eps = s.eps, .swap = s.swap}};
      });
}

std::unique_ptr<Kernel> ctc(const KernelQuery& q) {
  const Shape y = q.in[0].shape;
  const int64_t most = q.in[1].shape[1];
  const auto s = settings<Ctc>(q);
  const int64_t numbers =
      is_gradient(q) ? formula::ctc_slopes_numbers(most, y[1]) : formula::ctc_loss_numbers(most);
  const auto term = [=](const KernelArgs& a, DeviceContext& c, std::byte* memory) {
    return CtcTerm{.y = at<float>(a.in[0]),
                   .labels = at<int32_t>(a.in[1]),
                   .samples = y[0],
                   .times = y[1],
                   .classes = y[2],
                   .most = most,
                   .blank = s.blank,
                   .ignore = s.ignore_index,
                   .zero_infinity = s.zero_infinity,
                   .by_length = s.by_length,
                   .memory = reinterpret_cast<double*>(memory),
                   .numbers = numbers,
                   .state = c.state};
  };
  return loss_of<CtcTerm>(q, y[0], 2, term, sizeof(double) * static_cast<size_t>(y[0] * numbers));
}

std::unique_ptr<Kernel> dice(const KernelQuery& q) {
  const Shape y = q.in[0].shape;
  const int64_t lines = y[0] * y[1], inner = y.tail(2).elements();
  const bool by_class = q.in[1].dtype == DType::i32, gradient = is_gradient(q);
  const auto s = settings<Dice>(q);
  const int64_t blocks = PartialSums<DiceTerm>::blocks(lines);
  const size_t partials = gradient ? 0 : static_cast<size_t>(blocks) * sizeof(double);
  DeviceContext::current().reserve(partials +
                                   static_cast<size_t>(lines) * sizeof(formula::Overlap));
  return enqueue([=](const KernelArgs& a, DeviceContext& c) {
    auto* const partial = reinterpret_cast<double*>(c.workspace);
    auto* const sums = reinterpret_cast<formula::Overlap*>(c.workspace + partials);
    const DiceInput in{.p = at<float>(a.in[0]),
                       .t = by_class ? nullptr : at<float>(a.in[1]),
                       .classes = by_class ? at<int32_t>(a.in[1]) : nullptr,
                       .lines = lines,
                       .channels = y[1],
                       .inner = inner,
                       .state = c.state};
    launch(c.stream, DiceSums{in, sums}, lines);
    if (gradient) {
      launch(c.stream,
             DiceGradient{.in = in,
                          .sums = sums,
                          .smooth = s.smooth,
                          .share = s.share,
                          .divisor = at<float>(a.in[2]),
                          .dp = at<float>(a.out[0])},
             lines * inner);
      return;
    }
    const DiceTerm term{.sums = sums, .lines = lines, .smooth = s.smooth, .share = s.share};
    launch(c.stream, PartialSums<DiceTerm>{term, partial, lines}, blocks);
    launch(c.stream,
           Total{.partial = partial,
                 .divisor = at<float>(a.in[2]),
                 .total = at<double>(a.out[0]),
                 .partials = blocks},
           1);
  });
}

}  // namespace

std::vector<KernelType> vector_loss_rows() {
  std::vector<KernelType> out;
  const auto both = [&](std::string_view op, std::string_view gradient, auto prepare) {
    out.push_back(own(op, not_f32, prepare));
    out.push_back(own(gradient, not_f32, prepare));
  };
  both("gaussian_nll_loss", "gaussian_nll_loss_gradient", gaussian_nll);
  both("cosine_embedding_loss", "cosine_embedding_loss_gradient", cosine_embedding);
  both("triplet_margin_loss", "triplet_margin_loss_gradient", triplet_margin);
  both("ctc_loss", "ctc_loss_gradient", ctc);
  both("dice_loss", "dice_loss_gradient", dice);
  return out;
}

}  // namespace dpt::cuda
