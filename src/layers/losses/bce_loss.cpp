// bce_loss: -w (t log y + (1 - t) log(1 - y)) for each element, with logarithms clamped to -100,
// for probabilities y, such as the output of sigmoid; any shape.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct BceLoss : Reduction {
  static constexpr OutputKind kOutputs = OutputKind::probabilities;
  static constexpr Usage kUsage{"torch.nn.BCELoss",
                                "loss: bce_loss\n"
                                "loss: {bce_loss: {reduction: sum, weight: [1, 2]}}"};

  std::vector<double> weight;

  static KeyTable<BceLoss> keys() {
    return KeyTable<BceLoss>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("weight", &BceLoss::weight, "weight of each element of the last dimension");
  }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    require_values("bce_loss", g, output, target);
    std::vector<ValueId> in = {output, target, divisor};
    if (!weight.empty())
      in.push_back(
          weight_constant("bce_loss", "weight", g, weight, g.shape(output).back(), "outputs"));
    return g.apply("bce_loss", in);
  }

  Divisor divisor() const { return over(Divisor::elements); }

  std::string torch() const {
    PythonCall call("nn.BCELoss");
    if (!weight.empty()) call.expression("weight", torch_tensor(weight));
    return call.key("reduction", reduction, "mean").str();
  }
};

}  // namespace

LossType bce_loss() {
  LossType type =
      loss_type<BceLoss>("bce_loss", "Binary cross entropy of probabilities between 0 and 1.");
  type.target_problem = [](const std::any&, std::span<const float> values,
                           std::span<const int32_t>) -> std::string {
    for (const float t : values)
      if (!(t >= 0 && t <= 1))
        return fmt::format(
            "has the target {:g}, but bce_loss takes targets from 0 to 1; scale the targets, or "
            "choose another loss",
            t);
    return "";
  };
  type.needs =
      "all outputs of the model must be between 0 and 1; end it with a sigmoid, or take "
      "bce_with_logits_loss";
  return type;
}

}  // namespace dpt::losses
