// n_adam: Adam with Nesterov momentum (Dozat, 2016), as torch.optim.NAdam.
#include <cmath>

#include "optim/optimizers/adam_settings.h"

namespace dpt::optimizers {
namespace {

struct NAdam : MomentSettings {
  static constexpr Usage kUsage{
      "torch.optim.NAdam",
      "optimizer: {n_adam: 0.002}\n"
      "optimizer: {n_adam: {lr: 0.002, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.01,\n"
      "    momentum_decay: 0.01, decoupled_weight_decay: true, maximize: false}}"};

  double momentum_decay = 4e-3;

  NAdam() { lr = 2e-3; }

  static constexpr bool kHasMomentum = true;

  static KeyTable<NAdam> keys() {
    KeyTable<NAdam> table;
    return add_last_keys(
        add_first_keys(table).optional("momentum_decay", &NAdam::momentum_decay,
                                       "how fast the momentum grows: step t uses "
                                       "betas[0] * (1 - 0.96^(t * momentum_decay) / 2)",
                                       kNotNegative));
  }

  // The momentum of step t, where decay is 0.96^(t * momentum_decay).
  static double mu(double beta1, double decay) { return beta1 * (1 - decay / 2); }

  // The product of the momenta of steps 1 to t. PyTorch keeps it as a state. It may be computed
  // anew in each step since it soon has no effect on 1 - product: with a beta of 0.99 after some
  // 4,000 steps.
  double mu_product(int64_t t, const Momenta& momenta) const {
    constexpr double kNoEffect = 1e-17;
    const double decay_of_step = std::pow(0.96, momentum_decay);
    double product = 1, decay = 1;
    for (int64_t i = 1; i <= t && product > kNoEffect; ++i) {
      decay *= decay_of_step;
      product *= mu(momentum_of(momenta, i, betas[0]), decay);
    }
    return product;
  }

  formula::NAdam<double> step(int64_t t, double rate, const Momenta& momenta) const {
    const auto steps = static_cast<double>(t);
    const double beta1 = momentum_of(momenta, t, betas[0]);
    const double now = mu(beta1, std::pow(0.96, steps * momentum_decay));
    const double next = mu(beta1, std::pow(0.96, (steps + 1) * momentum_decay));
    const double product = mu_product(t, momenta);
    return {.gradient_step = rate * (1 - now) / (1 - product),
            .average_step = rate * next / (1 - product * next),
            .one_minus_beta1 = 1 - beta1,
            .beta2 = betas[1],
            .one_minus_beta2 = 1 - betas[1],
            .correction2 = 1 - std::pow(betas[1], steps),
            .eps = eps,
            .weight_decay = added_decay(),
            .keep = keep(rate),
            .maximize = maximize};
  }
};

}  // namespace

OptimizerType n_adam() {
  return optimizer_type<NAdam>("n_adam", "NAdam (Dozat 2016): Adam with Nesterov momentum.");
}

}  // namespace dpt::optimizers
