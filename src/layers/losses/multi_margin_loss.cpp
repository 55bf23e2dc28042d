// multi_margin_loss: the mean over the classes i of max(0, margin - output[y] + output[i])^p, where
// i is not the target class y, whose weight multiplies it. Outputs are scores [N, C], targets
// classes i32 [N]. As in PyTorch, `mean` divides by the number of samples, whatever their weights.
#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct MultiMarginLoss : Reduction {
  static constexpr Usage kUsage{
      "torch.nn.MultiMarginLoss",
      "loss: multi_margin_loss\n"
      "loss: {multi_margin_loss: {p: 2, margin: 0.5, weight: [1, 2, 1], reduction: sum}}"};

  int64_t p = 1;
  double margin = 1;
  std::vector<double> weight;

  static constexpr Rule<int64_t> kOneOrTwo{"must be 1 or 2",
                                           [](const int64_t& p) { return p == 1 || p == 2; }};

  static KeyTable<MultiMarginLoss> keys() {
    using S = MultiMarginLoss;
    return KeyTable<S>()
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc)
        .optional("p", &S::p, "power of each difference", kOneOrTwo)
        .optional("margin", &S::margin,
                  "distance to the target class's score from which on other scores count")
        .optional("weight", &S::weight, "weight of each class");
  }

  int dim(const Shape&) const { return 1; }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    const Shape y = g.shape(output);
    if (y.rank() > 2)
      fail(Fault::spec,
           "multi_margin_loss takes one score per class [N, C], but the model's output is {}",
           y.str());
    require_classes("multi_margin_loss", g, output, target, 1);
    std::vector<ValueId> in = {output, target, divisor};
    if (!weight.empty())
      in.push_back(weight_constant("multi_margin_loss", "weight", g, weight, y[1], "classes"));
    return g.apply("multi_margin_loss", in, MultiMargin{static_cast<int>(p), margin});
  }

  Divisor divisor() const { return over(Divisor::samples); }
};

}  // namespace

LossType multi_margin_loss() {
  return loss_type<MultiMarginLoss>(
      "multi_margin_loss", "Multi-class hinge loss: scores within a margin of the class's score.");
}

}  // namespace dpt::losses
