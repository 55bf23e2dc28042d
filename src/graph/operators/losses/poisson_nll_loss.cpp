// poisson_nll_loss: the negative log-likelihood of the target under a Poisson distribution, whose
// rate is exp(output) with log_input, else output. `full` adds an approximation of log(target!).
#include "graph/formulas/loss.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("poisson_nll_loss", in);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("poisson_nll_loss", in);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "poisson_nll_loss_gradient", dy);
}

void forward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<PoissonNll>(attrs);
  sum_terms(args, [&](double x, double t, size_t) {
    const double term =
        s.log_input ? formula::poisson_nll_log_input(x, t) : formula::poisson_nll(x, t, s.eps);
    return s.full ? term + formula::stirling(t) : term;
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<PoissonNll>(attrs);
  map_slopes(args, [&](double x, double t, size_t) {
    return s.log_input ? formula::poisson_nll_log_input_slope(x, t)
                       : formula::poisson_nll_slope(x, t, s.eps);
  });
}

std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  std::vector<Sample> out;
  for (const bool full : {false, true}) {
    out = both(std::move(out),
               pointwise_samples(op, gradient, PoissonNll{.full = full}, {-2, 2}, {0, 5}));
    out = both(
        std::move(out),
        pointwise_samples(op, gradient, PoissonNll{.log_input = false, .full = full, .eps = 0.01},
                          {0.5, 3}, {0, 5}));
  }
  return out;
}

}  // namespace

OperatorType poisson_nll_loss() {
  return {.name = "poisson_nll_loss",
          .precision = Precision::full,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = [] { return samples_of("poisson_nll_loss", false); },
          .flops = elements_of_first_input};
}

OperatorType poisson_nll_loss_gradient() {
  return {.name = "poisson_nll_loss_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("poisson_nll_loss_gradient", true); },
          .backward = true};
}

}  // namespace dpt::operators
