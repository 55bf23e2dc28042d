// Settings of dice_loss and sigmoid_dice_loss.
#pragma once

#include "layers/losses/common.h"

namespace dpt::losses {

struct DiceSettings : Reduction {
  double smooth = 1e-5;

  template <class L>
  static KeyTable<L> dice_keys() {
    return KeyTable<L>()
        .optional(
            "smooth", &DiceSettings::smooth,
            "added to numerator and denominator, so that a channel without targets has a loss",
            kPositive)
        .choice("reduction", &Reduction::reduction, {"mean", "sum", "none"}, kDoc);
  }

  // probabilities: [N, C, ...]
  ValueId of_probabilities(GraphBuilder& g, ValueId probabilities, ValueId target,
                           ValueId divisor) const {
    const auto channels = static_cast<double>(g.shape(probabilities)[1]);
    return g.apply("dice_loss", {probabilities, target, divisor},
                   Dice{.smooth = smooth, .share = reduction == "sum" ? 1 : 1 / channels});
  }

  Divisor divisor() const { return over(Divisor::samples); }
};

}  // namespace dpt::losses
