#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("dice_loss compares areas, channel by channel") {
  const std::vector<Given> in = {
      {f64({1, 2, 2}), {1, 0.5, 0, 0}}, {f64({1, 2, 2}), {1, 0, 0, 1}}, {f64({1}), {1}}};
  const Dice s{.smooth = 1};
  // Channel 0: both 1, all 2.5; channel 1: both 0, all 1.
  CHECK(close(run_op("dice_loss", in, s), {1 - 3 / 3.5 + 1 - 1 / 2.0}));
  CHECK(close(run_op("dice_loss_gradient", in, s),
              {(3 / 3.5 - 2) / 3.5, 3 / 3.5 / 3.5, 0.25, 0.25 - 1}));
  CHECK(close(run_op("dice_loss", in, Dice{.smooth = 1, .share = 0.5}),
              {(1 - 3 / 3.5 + 1 - 1 / 2.0) / 2}));
}

TEST_CASE("dice_loss takes classes for a row of ones in their channel") {
  const std::vector<Given> hot = {{f64({2, 2, 2}), {0.9, 0.2, 0.1, 0.8, 0.5, 0.5, 0.5, 0.5}},
                                  {f64({2, 2, 2}), {1, 0, 0, 1, 0, 0, 1, 1}},
                                  {f64({1}), {2}}};
  const std::vector<Given> classes = {hot[0], {i32({2, 2}), {0, 1, 1, 1}}, hot[2]};
  for (const char* name : {"dice_loss", "dice_loss_gradient"})
    CHECK(run_op(name, classes, Dice{}) == run_op(name, hot, Dice{}));
}

TEST_CASE("dice_loss refuses other targets") {
  CHECK(refusal("dice_loss", {f32({4, 3, 5}), i32({4, 3}), f32({1})}) ==
        "dice_loss: output f32[4, 3, 5] needs targets f32[4, 3, 5] or classes i32[4, 5], not "
        "i32[4, 3]");
}

}  // namespace dpt
