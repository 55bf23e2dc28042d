#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("multilabel_margin_loss takes lists of labels") {
  CHECK(lowered_loss("multilabel_margin_loss", real({4, 3}), numbers({4, 3})) ==
        "loss.multi_margin_loss f64[1] = multi_margin_loss(input, target, divisor)\n");
  CHECK(divisor_word("multilabel_margin_loss") == Divisor::samples);
  CHECK(complaint(lowered_loss("multilabel_margin_loss", real({4, 3}), numbers({4}))) ==
        "error: multilabel_margin_loss takes scores [N, C] and the numbers of each sample's "
        "classes [N, C], filled up with -1; the model's output is [4, 3], the targets are i32[4]");
  CHECK(torch_loss("{multilabel_margin_loss: sum}") ==
        "nn.MultiLabelMarginLoss(reduction=\"sum\")");
}

TEST_CASE("multilabel_margin_loss says which labels are no classes") {
  const auto problem = [](std::vector<int32_t> labels) {
    for (const LossType& type : loss_table())
      if (type.name == "multilabel_margin_loss") return type.target_problem({}, {}, labels);
    return std::string();
  };
  CHECK(problem({2, 0, -1}).empty());
  CHECK(problem({2, 3, -1}) ==
        "has the label 3, but multilabel_margin_loss takes the classes 0 to 2, and -1 behind them");
  CHECK(problem({-2, 0, 0}).starts_with("has the label -2"));
}

}  // namespace dpt
