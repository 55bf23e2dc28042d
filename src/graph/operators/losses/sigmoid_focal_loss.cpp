// sigmoid_focal_loss: bce_with_logits_loss with the factor (1 - p)^gamma, where p is the
// probability of the target, and with the weight alpha of positive targets (Lin et al., 2017).
#include "graph/formulas/loss.h"
#include "graph/operators/losses/loss_support.h"

namespace dpt::operators {
namespace {

std::vector<TensorDesc> infer(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("sigmoid_focal_loss", in);
  return one_double();
}

std::vector<TensorDesc> infer_gradient(std::span<const TensorDesc> in, const std::any&) {
  need_pointwise("sigmoid_focal_loss", in);
  return {in[0]};
}

std::vector<ValueId> gradient(GraphBuilder& g, const GraphNode& n, std::span<const ValueId> dy) {
  return loss_gradient(g, n, "sigmoid_focal_loss_gradient", dy);
}

void forward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<SigmoidFocal>(attrs);
  sum_terms(args, [&](double x, double t, size_t) {
    return formula::sigmoid_focal(x, t, s.alpha, s.gamma);
  });
}

void backward(const KernelArgs& args, const std::any& attrs) {
  const auto& s = settings<SigmoidFocal>(attrs);
  map_slopes(args, [&](double x, double t, size_t) {
    return formula::sigmoid_focal_slope(x, t, s.alpha, s.gamma);
  });
}

std::vector<Sample> samples_of(std::string_view op, bool gradient) {
  return both(
      both(pointwise_samples(op, gradient, SigmoidFocal{}, {-5, 5}, {0, 1}),
           pointwise_samples(op, gradient, SigmoidFocal{.alpha = -1, .gamma = 0.5}, {-5, 5},
                             {0, 1})),
      pointwise_samples(op, gradient, SigmoidFocal{.alpha = 0.75, .gamma = 0}, {-5, 5}, {0, 1}));
}

}  // namespace

OperatorType sigmoid_focal_loss() {
  return {.name = "sigmoid_focal_loss",
          .precision = Precision::full,
          .infer = infer,
          .gradient = gradient,
          .reference = forward,
          .samples = [] { return samples_of("sigmoid_focal_loss", false); },
          .flops = elements_of_first_input};
}

OperatorType sigmoid_focal_loss_gradient() {
  return {.name = "sigmoid_focal_loss_gradient",
          .precision = Precision::full,
          .infer = infer_gradient,
          .reference = backward,
          .samples = [] { return samples_of("sigmoid_focal_loss_gradient", true); },
          .backward = true};
}

}  // namespace dpt::operators
