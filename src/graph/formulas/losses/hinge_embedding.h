// hinge_embedding_loss: x if t is 1, max(0, margin - x) if t is -1, for distances x. As in PyTorch,
// other targets have both terms.
#pragma once

#include "graph/formulas/loss.h"

namespace dpt::formula {

struct HingeEmbedding {
  double margin = 1;
  static constexpr Parameter<HingeEmbedding> kParameters[] = {
      {"margin", &HingeEmbedding::margin,
       "with the target -1, outputs of at least this have zero loss"}};
  static constexpr LossSample kSamples[] = {{-3, 0.5, -1, 1, {1}}, {1, 3, -1, 1, {0.5}}};
  static constexpr PointwiseLossRow kRow{
      .name = "hinge_embedding_loss",
      .gradient = "hinge_embedding_loss_gradient",
      .torch = "torch.nn.HingeEmbeddingLoss",
      .example =
          "loss: hinge_embedding_loss\n"
          "loss: {hinge_embedding_loss: {reduction: sum, margin: 0.5}}",
      .summary = "Distances: pulled to 0 for the target 1, pushed beyond margin for -1."};

  template <class T>
  DPT_METHOD T value(T x, T t) const {
    const T below = T(margin) - x;
    return select(t == T(1), T(0), select(below < T(0), T(0), below)) + select(t == T(-1), T(0), x);
  }
  template <class T>
  DPT_METHOD T slope(T x, T t) const {
    return select(t == T(1), T(0), select(T(margin) - x > T(0), T(-1), T(0))) +
           select(t == T(-1), T(0), T(1));
  }
};

}  // namespace dpt::formula
