#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "layers/lowered.h"

namespace dpt {

TEST_CASE("losses of one value per element divide by the number of elements, as torch does") {
  for (const std::string loss :
       {"bce_loss", "bce_with_logits_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss",
        "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss"}) {
    CAPTURE(loss);
    CHECK(divisor_word(loss) == Divisor::elements);
    CHECK(divisor_word(fmt::format("{{{}: sum}}", loss)) == Divisor::one);
    CHECK(complaint(lowered_loss(fmt::format("{{{}: none}}", loss), real({4, 3}), real({4, 3}))) ==
          "error: reduction 'none' cannot be trained: use 'mean' or 'sum'");
  }
}

}  // namespace dpt
