// margin_ranking_loss: max(0, margin - t * x) for the difference x of two scores.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct MarginRanking {
  double margin = 0;
  static constexpr Parameter<MarginRanking> kParameters[] = {
      {"margin", &MarginRanking::margin, "how much larger the score must be that is to be larger"}};
  static constexpr LossSample kSamples[] = {{0.5, 2, -1, -0.2}, {-1, 1, -0.4, 0.4, {0.5}}};
  static constexpr PointwiseLossRow kRow{
      .name = "margin_ranking_loss",
      .gradient = "margin_ranking_loss_gradient",
      .torch = "torch.nn.MarginRankingLoss",
      .example =
          "loss: margin_ranking_loss\n"
          "loss: {margin_ranking_loss: {reduction: sum, margin: 0.5}}",
      .summary =
          "Output [N, 2, ...], two scores of each sample: the first is to be larger for the target "
          "1, the second for -1. Targets are [N, ...], or [N, 1], stored as float32. Linear layers "
          "on inputs [N, 2, F] share their weights between both.",
      .torch_class = R"py(class MarginRanking(nn.MarginRankingLoss):
    """Compares the two scores of each sample."""

    def forward(self, output, target):
        first, second = output[:, 0], output[:, 1]
        return super().forward(first.reshape(target.shape), second.reshape(target.shape), target)
)py",
      .pairs = true};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    const T z = T(margin) - t * x;
    return select(z < T(0), T(0), z);
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    return select(T(margin) - t * x > T(0), -t, T(0));
  }
};

}  // namespace dpt::formula
