// nll_loss: minus the log-probability of the target class, for log-probabilities [N, C, d...], such
// as the output of log_softmax, or, with class_dim -1, [N, d..., C]. Targets are classes i32 [N,
// d...].
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct NllLossLayer : ClassTargets {
  static constexpr OutputKind kOutputs = OutputKind::log_probabilities;
  static constexpr Usage kUsage{
      "torch.nn.NLLLoss",
      "loss: nll_loss\n"
      "loss: {nll_loss: {reduction: sum, weight: [1, 2, 1], ignore_index: 0, class_dim: -1}}"};

  static KeyTable<NllLossLayer> keys() {
    return KeyTable<NllLossLayer>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("weight", &NllLossLayer::weight, "weight of each class")
        .optional("ignore_index", &NllLossLayer::ignore_index, "targets of this class are ignored")
        .optional("class_dim", &ClassDim::class_dim, kClassDim, kOneOrLast)
        .not_in_torch();
  }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    const Shape y = g.shape(output);
    require_classes("nll_loss", g, output, target, dim(y));
    std::vector<ValueId> in = {output, target, divisor};
    add_weight("nll_loss", g, y, in);
    return g.apply("nll_loss", in, NllLoss{ignore_index, dim(y)});
  }

  bool mean_likelihood() const { return reduction == "mean" && weight.empty(); }
};

}  // namespace

LossType nll_loss() {
  return loss_type<NllLossLayer>("nll_loss",
                                 "Negative log-likelihood of log-probabilities and classes.");
}

}  // namespace dpt::losses
