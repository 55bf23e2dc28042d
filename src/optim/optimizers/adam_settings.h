// Common part of adam and adam_w, which differ in the weight decay.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optim/optimizers/betas.h"

namespace dpt::optimizers {

struct AdamSettings {
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;

  static constexpr bool kHasMomentum = true;

  template <class Table>
  static Table& add_keys(Table& table, std::string_view decay) {
    using S = AdamSettings;
    return table.optional("lr", &S::lr, "learning rate", kNotNegative)
        .optional("betas", &S::betas,
                  "decay rates of the averages of the gradient and of its square", kBelowOne)
        .optional("eps", &S::eps, "small number added to the denominator", kNotNegative)
        .optional("weight_decay", &S::weight_decay, decay, kNotNegative)
        .optional("amsgrad", &S::amsgrad, "whether to use the maximum of all averages of squares")
        .optional("maximize", &S::maximize,
                  "whether to maximize the loss instead of minimizing it");
  }

  static void check(const AdamSettings& s, const Owner& owner, Diagnostics& d) {
    check_betas(s.betas, owner, d);
  }

  std::vector<std::string> states(bool) const {
    if (amsgrad) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
    return {"exp_avg", "exp_avg_sq"};
  }

  // The scalars without weight decay.
  formula::Adam<double> moments(int64_t t, double rate, const Momenta& momenta) const {
    const double beta1 = momentum_of(momenta, t, betas[0]), beta2 = betas[1];
    const auto steps = static_cast<double>(t);
    return {.step_size = rate / (1 - std::pow(beta1, steps)),
            .one_minus_beta1 = 1 - beta1,
            .beta2 = beta2,
            .one_minus_beta2 = 1 - beta2,
            .inverse_correction = 1 / std::sqrt(1 - std::pow(beta2, steps)),
            .eps = eps,
            .amsgrad = amsgrad,
            .maximize = maximize};
  }
};

}  // namespace dpt::optimizers
