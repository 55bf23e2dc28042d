// kl_div: target * (log(target) - output) for each element; the output holds log-probabilities.
// With log_target the target does too: exp(target) * (target - output).
#include "graph/formulas/loss.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("kl_div", in);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("kl_div", in);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "kl_div_gradient", dy);
}

void forward(const KernelArgs& args, const std::any& attrs) {
  const bool logs = settings<KlDiv>(attrs).log_target;
  sum_terms(args, [&](double x, double t, size_t) {
    return logs ? formula::kl_div_log_target(x, t) : formula::kl_div(x, t);
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  const bool logs = settings<KlDiv>(attrs).log_target;
  map_slopes(args, [&](double x, double t, size_t) {
    return logs ? formula::kl_div_log_target_slope(x, t) : formula::kl_div_slope(x, t);
  });
}

std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  return both(pointwise_samples(op, gradient, KlDiv{}, {-4, 0}, {0, 1}),
              pointwise_samples(op, gradient, KlDiv{.log_target = true}, {-4, 0}, {-4, 0}));
}

}  // namespace

OperatorType kl_div() {
  return {.name = "kl_div",
          .precision = Precision::full,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = [] { return samples_of("kl_div", false); },
          .flops = elements_of_first_input};
}

OperatorType kl_div_gradient() {
  return {.name = "kl_div_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("kl_div_gradient", true); },
          .backward = true};
}

}  // namespace dpt::operators
