// adagrad (Duchi et al., 2011): divides the gradient by the root of the sum of all squared
// gradients, as torch.optim.Adagrad.
#include "optim/optimizers/optimizer_type.h"

namespace dpt::optimizers {
namespace {

struct Adagrad {
  static constexpr Usage kUsage{
      "torch.optim.Adagrad",
      "optimizer: {adagrad: 0.01}\n"
      "optimizer: {adagrad: {lr: 0.01, lr_decay: 0.001, weight_decay: 0.01,\n"
      "    initial_accumulator_value: 0.1, eps: 1e-10, maximize: false}}"};

  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;

  static KeyTable<Adagrad> keys() {
    using S = Adagrad;
    return KeyTable<Adagrad>()
        .optional("lr", &S::lr, "learning rate", kNotNegative)
        .optional("lr_decay", &S::lr_decay,
                  "decay of the learning rate: step t uses lr / (1 + (t - 1) * lr_decay)",
                  kNotNegative)
        .optional("weight_decay", &S::weight_decay, "L2 penalty, added to the gradient",
                  kNotNegative)
        .optional("initial_accumulator_value", &S::initial_accumulator_value,
                  "initial value of the sums of squared gradients", kNotNegative)
        .optional("eps", &S::eps, "small number added to the denominator", kNotNegative)
        .optional("maximize", &S::maximize,
                  "whether to maximize the loss instead of minimizing it");
  }

  std::vector<std::string> states(bool) const { return {"sum"}; }
  double initial_state() const { return initial_accumulator_value; }

  formula::Adagrad<double> step(int64_t t, double rate, const Momenta&) const {
    return {.clr = rate / (1 + static_cast<double>(t - 1) * lr_decay),
            .eps = eps,
            .weight_decay = weight_decay,
            .maximize = maximize};
  }
};

}  // namespace

OptimizerType adagrad() {
  return optimizer_type<Adagrad>(
      "adagrad",
      "Adagrad (Duchi et al. 2011): gradients divided by the root of the sum of all squares.");
}

}  // namespace dpt::optimizers
