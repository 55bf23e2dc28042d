// sigmoid_focal_loss (Lin et al., 2017): bce_with_logits_loss with the factor q^gamma, where q is
// the probability of the other target, and with the weight alpha of positive and 1 - alpha of
// negative targets.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct SigmoidFocal {
  double alpha = 0.25, gamma = 2;
  static constexpr bool is_share_or_none(const double& a) { return a == -1 || (a >= 0 && a <= 1); }
  static constexpr Parameter<SigmoidFocal> kParameters[] = {
      {"alpha",
       &SigmoidFocal::alpha,
       "weight of positive targets; negative ones have 1 - alpha; -1: no weights",
       {.text = "must be between 0 and 1, or -1", .holds = is_share_or_none}},
      {"gamma", &SigmoidFocal::gamma, "exponent of (1 - p)", kFromZero}};
  static constexpr LossSample kSamples[] = {
      {-5, 5, 0, 1, {0.25, 2}}, {-5, 5, 0, 1, {-1, 0.5}}, {-5, 5, 0, 1, {0.75, 0}}};
  static constexpr PointwiseLossRow kRow{
      .name = "sigmoid_focal_loss",
      .gradient = "sigmoid_focal_loss_gradient",
      .torch = "torchvision.ops.sigmoid_focal_loss",
      .example =
          "loss: sigmoid_focal_loss\n"
          "loss: {sigmoid_focal_loss: {alpha: 0.75, gamma: 1.5, reduction: sum}}",
      .summary =
          "Binary cross entropy of logits in which targets that are predicted well count less.",
      .outputs = OutputKind::logits,
      .torch_class = R"py(class SigmoidFocalLoss(nn.Module):
    """torchvision.ops.sigmoid_focal_loss."""

    def __init__(self, alpha=0.25, gamma=2.0, reduction="mean"):
        super().__init__()
        self.alpha, self.gamma, self.reduction = alpha, gamma, reduction

    def forward(self, output, target):
        p = output.sigmoid()
        cost = nn.functional.binary_cross_entropy_with_logits(output, target, reduction="none")
        loss = (p * (1 - target) + (1 - p) * target) ** self.gamma * cost
        if self.alpha >= 0:
            loss = (self.alpha * target + (1 - self.alpha) * (1 - target)) * loss
        return loss.sum() if self.reduction == "sum" else loss.mean()
)py",
      .reduction_first = false};

  template <class T>
  DPT_METHOD T weight(T t) const {
    if (alpha < 0) return T(1);
    const T a = T(alpha);
    return a * t + (T(1) - a) * (T(1) - t);
  }
  template <class T>
  DPT_METHOD T value(T x, T t) const {
    const T p = reciprocal(T(1) + exp(-x)), no = reciprocal(T(1) + exp(x));
    const T q = p * (T(1) - t) + no * t;
    return weight(t) * focal_power(q, gamma) * bce_with_logits(x, t, T(1));
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    const T p = reciprocal(T(1) + exp(-x)), no = reciprocal(T(1) + exp(x));
    const T q = p * (T(1) - t) + no * t;
    const T growth = select(q > T(0), p * no * (T(1) - T(2) * t) / q, T(0));  // of log q
    return weight(t) * focal_power(q, gamma) *
           (p * (T(1) - t) - no * t + T(gamma) * bce_with_logits(x, t, T(1)) * growth);
  }
};

}  // namespace dpt::formula
