// bce_with_logits_loss: sigmoid and bce_loss in one, without overflow for large |x|: w ((1 - t) x +
// (1 + (pos_weight - 1) t) (log1p(exp(-|x|)) + max(-x, 0))); any shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct BceWithLogitsLoss : Reduction {
  static constexpr OutputKind kOutputs = OutputKind::logits;
  static constexpr Usage kUsage{
      "torch.nn.BCEWithLogitsLoss",
      "loss: bce_with_logits_loss\n"
      "loss: {bce_with_logits_loss: {reduction: sum, weight: [1, 2], pos_weight: [1, 3]}}"};

  std::vector<double> weight, pos_weight;

  static KeyTable<BceWithLogitsLoss> keys() {
    return KeyTable<BceWithLogitsLoss>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("weight", &BceWithLogitsLoss::weight,
                  "weight of each element of the last dimension")
        .optional("pos_weight", &BceWithLogitsLoss::pos_weight,
                  "weight of positive targets, for each element of the last dimension");
  }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("bce_with_logits_loss", g, output, target);
    std::vector<ValueId> in = {output, target, divisor};
    const auto add = [&](std::string_view key, const std::vector<double>& values) {
      if (!values.empty())
        in.push_back(weight_constant("bce_with_logits_loss", key, g, values, g.shape(output).back(),
                                     "outputs"));
    };
    add("weight", weight);
    add("pos_weight", pos_weight);
    return g.apply("bce_with_logits_loss", in, BceWithLogits{!weight.empty(), !pos_weight.empty()});
  }

  Divisor divisor() const { return over(Divisor::elements); }

  std::string torch() const {
    PythonCall call("nn.BCEWithLogitsLoss");
    if (!weight.empty()) call.expression("weight", torch_tensor(weight));
    call.key("reduction", reduction, "mean");
    if (!pos_weight.empty()) call.expression("pos_weight", torch_tensor(pos_weight));
    return call.str();
  }
};

}  // namespace

LossType bce_with_logits_loss() {
  return loss_type<BceWithLogitsLoss>("bce_with_logits_loss",
                                      "Binary cross entropy of scores (logits).");
}

}  // namespace dpt::losses
