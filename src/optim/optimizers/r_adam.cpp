// r_adam: rectified Adam (Liu et al., 2020, algorithm 2), as torch.optim.RAdam. It takes steps of
// momentum until the average of squares has seen enough gradients.
#include <cmath>

#include "optim/optimizers/adam_settings.h"

namespace dpt::optimizers {
namespace {

struct RAdam : MomentSettings {
  static constexpr Usage kUsage{
      "torch.optim.RAdam",
      "optimizer: {r_adam: 0.001}\n"
      "optimizer: {r_adam: {lr: 0.001, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.01,\n"
      "    decoupled_weight_decay: true, maximize: false}}"};

  static constexpr bool kHasMomentum = true;

  static KeyTable<RAdam> keys() {
    KeyTable<RAdam> table;
    return add_last_keys(add_first_keys(table));
  }

  formula::RAdam<double> step(int64_t t, double rate, const Momenta& momenta) const {
    const double beta1 = momentum_of(momenta, t, betas[0]), beta2 = betas[1];
    const auto steps = static_cast<double>(t);
    const double power = std::pow(beta2, steps);
    // The length of the average of squares, at its end and now.
    const double end = 2 / (1 - beta2) - 1, now = end - 2 * steps * power / (1 - power);
    const bool rectified = now > 5;
    return {
        .lr = rate,
        .one_minus_beta1 = 1 - beta1,
        .beta2 = beta2,
        .one_minus_beta2 = 1 - beta2,
        .correction1 = 1 - std::pow(beta1, steps),
        .root_of_correction2 = std::sqrt(1 - power),
        .rectification =
            rectified ? std::sqrt((now - 4) * (now - 2) * end / ((end - 4) * (end - 2) * now)) : 1,
        .eps = eps,
        .weight_decay = added_decay(),
        .keep = keep(rate),
        .rectified = rectified,
        .maximize = maximize};
  }
};

}  // namespace

OptimizerType r_adam() {
  return optimizer_type<RAdam>(
      "r_adam", "RAdam (Liu et al. 2020): Adam with small first steps, without a warm-up.");
}

}  // namespace dpt::optimizers
