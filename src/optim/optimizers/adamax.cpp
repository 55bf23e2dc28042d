// adamax: Adam with the maximum norm (Kingma and Ba, 2015, algorithm 2), as torch.optim.Adamax.
#include <cmath>

#include "optim/optimizers/betas.h"

namespace dpt::optimizers {
namespace {

struct Adamax {
  static constexpr Usage kUsage{
      "torch.optim.Adamax",
      "optimizer: {adamax: 0.002}\n"
      "optimizer: {adamax: {lr: 0.002, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.01,\n"
      "    maximize: false}}"};

  double lr = 2e-3;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;

  static constexpr bool kHasMomentum = true;

  static KeyTable<Adamax> keys() {
    using S = Adamax;
    return KeyTable<Adamax>()
        .optional("lr", &S::lr, "learning rate", kNotNegative)
        .optional("betas", &S::betas,
                  "decay rates of the average of the gradient and of its largest absolute value",
                  kBelowOne)
        .optional("eps", &S::eps, "small number added to absolute values", kNotNegative)
        .optional("weight_decay", &S::weight_decay, "L2 penalty, added to the gradient",
                  kNotNegative)
        .optional("maximize", &S::maximize,
                  "whether to maximize the loss instead of minimizing it");
  }

  static void check(const Adamax& s, const Owner& owner, Diagnostics& d) {
    check_betas(s.betas, owner, d);
  }

  std::vector<std::string> states(bool) const { return {"exp_avg", "exp_inf"}; }

  formula::Adamax<double> step(int64_t t, double rate, const Momenta& momenta) const {
    const double beta1 = momentum_of(momenta, t, betas[0]);
    return {.clr = rate / (1 - std::pow(beta1, static_cast<double>(t))),
            .one_minus_beta1 = 1 - beta1,
            .beta2 = betas[1],
            .eps = eps,
            .weight_decay = weight_decay,
            .maximize = maximize};
  }
};

}  // namespace

OptimizerType adamax() {
  return optimizer_type<Adamax>(
      "adamax", "Adamax (Kingma & Ba 2015): averages of the gradient over its largest value.");
}

}  // namespace dpt::optimizers
