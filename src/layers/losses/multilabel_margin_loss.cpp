// multilabel_margin_loss: the mean over all pairs of a label y of the sample and a class i that is
// none of its labels of max(0, 1 - output[y] + output[i]). Outputs are scores [N, C], targets lists
// of labels i32 [N, C], which end at the first -1.
#include <algorithm>

#include "layers/losses/common.h"

namespace dpt::losses {
namespace {

struct MultilabelMarginLoss : Reduction {
  static constexpr Usage kUsage{"torch.nn.MultiLabelMarginLoss",
                                "loss: multilabel_margin_loss\n"
                                "loss: {multilabel_margin_loss: {reduction: sum}}"};

  static KeyTable<MultilabelMarginLoss> keys() {
    return KeyTable<MultilabelMarginLoss>().choice("reduction", &Reduction::reduction,
                                                   {"mean", "sum", "none"}, kDoc);
  }

  ValueId build(GraphBuilder& g, ValueId output, ValueId target, ValueId divisor) const {
    const TensorDesc y = g.desc(output), t = g.desc(target);
    if (y.shape.rank() != 2 || t != TensorDesc{DType::i32, y.shape})
      fail(Fault::spec,
           "multilabel_margin_loss takes scores [N, C] and the numbers of each sample's classes "
           "[N, C], filled up with -1; the model's output is {}, the targets are {}{}",
           y.shape.str(), name_of(t.dtype), t.shape.str());
    return g.apply("multi_margin_loss", {output, target, divisor}, MultiMargin{});
  }

  Divisor divisor() const { return over(Divisor::samples); }
};

// See LossType::target_problem.
std::string problem(const std::any&, std::span<const float>, std::span<const int32_t> labels) {
  for (const int32_t label : labels)
    if (label < -1 || std::cmp_greater_equal(label, labels.size()))
      return fmt::format(
          "has the label {}, but multilabel_margin_loss takes the classes 0 to {}, and -1 behind "
          "them",
          label, std::ssize(labels) - 1);
  return "";
}

}  // namespace

LossType multilabel_margin_loss() {
  LossType type = loss_type<MultilabelMarginLoss>(
      "multilabel_margin_loss",
      "Multi-label hinge loss: each label's score is to be larger by 1 than those of other "
      "classes. Targets [N, C] are the numbers of a sample's classes, filled up with -1.");
  type.ignore_index = [](const std::any&) -> int64_t { return -1; };
  type.class_dim = [](const std::any&, const Shape&) { return 1; };
  type.target_problem = problem;
  return type;
}

}  // namespace dpt::losses
