// adadelta (Zeiler, 2012): steps in the unit of the weights, from averages of squared gradients and
// squared steps, as torch.optim.Adadelta.
#include "optim/optimizers/optimizer_type.h"

namespace dpt::optimizers {
namespace {

struct Adadelta {
  static constexpr Usage kUsage{
      "torch.optim.Adadelta",
      "optimizer: adadelta\n"
      "optimizer: {adadelta: {lr: 1, rho: 0.95, eps: 1e-6, weight_decay: 0.01, maximize: false}}"};

  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;

  static KeyTable<Adadelta> keys() {
    using S = Adadelta;
    return KeyTable<Adadelta>()
        .optional("lr", &S::lr, "factor of each update", kNotNegative)
        .optional("rho", &S::rho, "decay rate of both averages", kProbability)
        .optional("eps", &S::eps, "small number added under both square roots", kNotNegative)
        .optional("weight_decay", &S::weight_decay, "L2 penalty, added to the gradient",
                  kNotNegative)
        .optional("maximize", &S::maximize,
                  "whether to maximize the loss instead of minimizing it");
  }

  std::vector<std::string> states(bool) const { return {"square_avg", "acc_delta"}; }

  formula::Adadelta<double> step(int64_t, double rate, const Momenta&) const {
    return {.lr = rate,
            .rho = rho,
            .one_minus_rho = 1 - rho,
            .eps = eps,
            .weight_decay = weight_decay,
            .maximize = maximize};
  }
};

}  // namespace

OptimizerType adadelta() {
  return optimizer_type<Adadelta>(
      "adadelta",
      "Adadelta (Zeiler 2012): updates scaled by averages of past updates and gradients.");
}

}  // namespace dpt::optimizers
