// multilabel_soft_margin_loss: the mean of bce_with_logits_loss over the last dimension; `sum` and
// `mean` are over the others.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct MultilabelSoftMargin {
  double share = 1;
  static constexpr LossSample kSamples[] = {{-5, 5, 0, 1}};
  static constexpr PointwiseLossRow kRow{
      .name = "multilabel_soft_margin_loss",
      .gradient = "multilabel_soft_margin_loss_gradient",
      .torch = "torch.nn.MultiLabelSoftMarginLoss",
      .example =
          "loss: multilabel_soft_margin_loss\n"
          "loss: {multilabel_soft_margin_loss: {reduction: sum, weight: [1, 2]}}",
      .summary = "Binary cross entropy of scores (logits), averaged over the last dimension.",
      .outputs = OutputKind::logits,
      .weight = true};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    return T(share) * bce_with_logits(x, t, T(1));
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    return T(share) * bce_with_logits_slope(x, t, T(1));
  }
};

}  // namespace dpt::formula
