#include <doctest/doctest.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("triplet_margin_loss compares three vectors of each sample, without targets") {
  CHECK(lowered_loss("triplet_margin_loss", real({4, 3, 5}), numbers({4})) ==
        "loss.triplet_margin_loss f64[1] = triplet_margin_loss(input, divisor)\n");
  CHECK(complaint(lowered_loss("triplet_margin_loss", real({4, 15}), real({4, 1}))) ==
        "error: triplet_margin_loss compares three vectors of each sample [N, 3, D], but the "
        "model's output is [4, 15]");
  CHECK(divisor_word("triplet_margin_loss") == Divisor::samples);
  CHECK(torch_loss("{triplet_margin_loss: {margin: 0.5, p: 1, eps: 0, swap: true}}") ==
        "TripletMargin(margin=0.5, p=1.0, eps=0.0, swap=True)");
  CHECK(complaint(lowered_loss("{triplet_margin_loss: {p: 0.5}}", real({4, 3, 5}), numbers({4}))) ==
        "error: 'p' must be at least 1");
}

}  // namespace dpt
