// bce_with_logits_loss: sigmoid and bce_loss in one, without overflow for large |x|: (1 - t) x + (1
// + (p - 1) t) (log1p(exp(-|x|)) + max(-x, 0)), where p is the weight of positive targets.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct BceWithLogits {
  bool weight = false, pos_weight = false;  // which weights follow the divisor, in this order
  static constexpr LossSample kSamples[] = {{-5, 5, 0, 1}};
  static constexpr PointwiseLossRow kRow{
      .name = "bce_with_logits_loss",
      .gradient = "bce_with_logits_loss_gradient",
      .torch = "torch.nn.BCEWithLogitsLoss",
      .example =
          "loss: bce_with_logits_loss\n"
          "loss: {bce_with_logits_loss: {reduction: sum, weight: [1, 2], pos_weight: [1, "
          "3]}}",
      .summary = "Binary cross entropy of scores (logits).",
      .outputs = OutputKind::logits,
      .weight = true,
      .pos_weight = true};

  template <class T>
  DPT_METHOD T value(T x, T t, T p) const {
    return bce_with_logits(x, t, p);
  }
  template <class T>
  DPT_METHOD T slope(T x, T t, T p) const {
    return bce_with_logits_slope(x, t, p);
  }
};

}  // namespace dpt::formula
