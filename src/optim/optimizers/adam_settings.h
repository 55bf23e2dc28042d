// What adam, adam_w, n_adam and r_adam have in common.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optim/optimizers/betas.h"

namespace dpt::optimizers {

// The settings of all four.
struct MomentSettings {
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false, maximize = false;

  // The keys that come first; decay: text of weight_decay.
  template <class Table>
  static Table& add_first_keys(
      Table& table, std::string_view decay =
                        "L2 penalty, added to the gradient unless decoupled_weight_decay is set") {
    using S = MomentSettings;
    return table.optional("lr", &S::lr, "learning rate", kNotNegative)
        .optional("betas", &S::betas,
                  "decay rates of the averages of the gradient and of its square", kBelowOne)
        .optional("eps", &S::eps, "small number added to the denominator", kNotNegative)
        .optional("weight_decay", &S::weight_decay, decay, kNotNegative);
  }
  // The key that comes last.
  template <class Table>
  static Table& add_last_key(Table& table) {
    return table.optional("maximize", &MomentSettings::maximize,
                          "whether to maximize the loss instead of minimizing it");
  }
  // The last keys where the decay may be decoupled.
  template <class Table>
  static Table& add_last_keys(Table& table) {
    return add_last_key(
        table.optional("decoupled_weight_decay", &MomentSettings::decoupled_weight_decay,
                       "whether each step multiplies weights by 1 - lr * weight_decay instead"));
  }

  double added_decay() const { return decoupled_weight_decay ? 0 : weight_decay; }
  // The factor of the weights in each step.
  double keep(double rate) const { return decoupled_weight_decay ? 1 - rate * weight_decay : 1; }

  static void check(const MomentSettings& s, const Owner& owner, Diagnostics& d) {
    check_betas(s.betas, owner, d);
  }

  std::vector<std::string> states(bool) const { return {"exp_avg", "exp_avg_sq"}; }
};

// adam and adam_w, whose decay is decoupled.
struct AdamSettings : MomentSettings {
  bool amsgrad = false;

  static constexpr bool kHasMomentum = true;

  template <class Table>
  static Table& add_amsgrad(Table& table) {
    return table.optional("amsgrad", &AdamSettings::amsgrad,
                          "whether to use the maximum of all averages of squares");
  }

  std::vector<std::string> states(bool) const {
    if (amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
    return {"exp_avg", "exp_avg_sq"};
  }

  formula::Adam<double> step(int64_t t, double rate, const Momenta& momenta) const {
    const double beta1 = momentum_of(momenta, t, betas[0]), beta2 = betas[1];
    const auto steps = static_cast<double>(t);
    return {.step_size = rate / (1 - std::pow(beta1, steps)),
            .one_minus_beta1 = 1 - beta1,
            .beta2 = beta2,
            .one_minus_beta2 = 1 - beta2,
            .inverse_correction = 1 / std::sqrt(1 - std::pow(beta2, steps)),
            .eps = eps,
            .weight_decay = added_decay(),
            .keep = keep(rate),
            .amsgrad = amsgrad,
            .maximize = maximize};
  }
};

}  // namespace dpt::optimizers
