// cross_entropy: log_softmax and nll_loss in one, for scores [N, C, d...] or, with class_dim -1,
// [N, d..., C]. Targets are classes i32 [N, d...] or probabilities f32 of the scores' shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct CrossEntropyLoss : ClassTargets {
  static constexpr OutputKind kOutputs = OutputKind::scores;
  static constexpr Usage kUsage{
      "torch.nn.CrossEntropyLoss",
      "loss: cross_entropy\n"
      "loss: {cross_entropy: {reduction: sum, weight: [1, 2, 1], ignore_index: 0,\n"
      "    label_smoothing: 0.1, class_dim: -1}}"};

  double label_smoothing = 0;

  static KeyTable<CrossEntropyLoss> keys() {
    return KeyTable<CrossEntropyLoss>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("weight", &CrossEntropyLoss::weight, "weight of each class")
        .optional("ignore_index", &CrossEntropyLoss::ignore_index,
                  "targets of this class are ignored")
        .optional("label_smoothing", &CrossEntropyLoss::label_smoothing,
                  "share of each target that is spread evenly over all classes", kProbability)
        .optional("class_dim", &ClassDim::class_dim, kClassDim, kOneOrLast)
        .not_in_torch();
  }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    const Shape y = g.shape(output);
    if (probabilities(g, target)) {
      require_probabilities("cross_entropy", g, output, target);
      if (y.rank() < 2)
        fail(Fault::spec, "cross_entropy takes class scores [N, C], but the model's output is {}",
             y.str());
      if (ignore_index >= 0)
        fail(Fault::spec,
             "cross_entropy: ignore_index does not apply to targets that are probabilities; leave "
             "it out");
    } else {
      require_classes("cross_entropy", g, output, target, dim(y));
    }
    std::vector<ValueId> in = {output, target, divisor};
    add_weight("cross_entropy", g, y, in);
    return g.apply(
        "cross_entropy", in,
        CrossEntropy{
            .label_smoothing = label_smoothing, .ignore_index = ignore_index, .dim = dim(y)});
  }

  ValueId target_weight(GraphBuilder& g, ValueId target) const {
    // PyTorch divides by the number of positions, whatever the weights
    return probabilities(g, target) ? kNoValue : ClassTargets::target_weight(g, target);
  }

  bool mean_likelihood() const {
    return reduction == "mean" && weight.empty() && label_smoothing == 0;
  }

 private:
  static bool probabilities(const GraphBuilder& g, ValueId target) {
    return g.desc(target).dtype == DType::f32;
  }
};

}  // namespace

LossType cross_entropy() {
  return loss_type<CrossEntropyLoss>("cross_entropy",
                                     "Cross entropy of scores (logits) and classes.");
}

}  // namespace dpt::losses
