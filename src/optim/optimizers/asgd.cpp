// asgd: averaged stochastic gradient descent (Polyak and Juditsky, 1992), as torch.optim.ASGD.
#include <algorithm>
#include <cmath>

#include "optim/optimizers/optimizer_type.h"

namespace dpt::optimizers {
namespace {

struct Asgd {
  static constexpr Usage kUsage{
      "torch.optim.ASGD",
      "optimizer: {asgd: 0.01}\n"
      "optimizer: {asgd: {lr: 0.01, lambd: 0.0001, alpha: 0.75, t0: 1000, weight_decay: 0.01,\n"
      "    maximize: false, average: true}}"};

  double lr = 1e-2;
  double lambd = 1e-4;
  double alpha = 0.75;
  double t0 = 1e6;
  double weight_decay = 0;
  bool maximize = false;
  bool average = false;

  // PyTorch computes the step size of a step at the end of the one before it, from that step's
  // learning rate.
  static constexpr bool kUsesPreviousLr = true;

  static KeyTable<Asgd> keys() {
    using S = Asgd;
    return KeyTable<S>()
        .optional("lr", &S::lr, "learning rate", kNotNegative)
        .optional("lambd", &S::lambd,
                  "decay: each step multiplies weights by 1 - lambd * eta, where eta is its size",
                  kNotNegative)
        .optional("alpha", &S::alpha,
                  "how fast steps become smaller: step t + 1 has the size "
                  "lr / (1 + lambd * lr * t)^alpha, with the lr of step t",
                  kNotNegative)
        .optional("t0", &S::t0,
                  "the average is the mean of the weights after step t0 + 2 and all later ones; "
                  "until then it is the weights",
                  kNotNegative)
        .optional("weight_decay", &S::weight_decay, "L2 penalty, added to the gradient",
                  kNotNegative)
        .optional("maximize", &S::maximize, "whether to maximize the loss instead of minimizing it")
        .optional("average", &S::average,
                  "whether evaluations and the saved model use the averaged weights, which "
                  "PyTorch computes but leaves in the optimizer's state `ax`")
        .not_in_torch();
  }

  std::vector<std::string> states(bool) const { return {"ax"}; }
  int average_state() const { return average ? 0 : -1; }
  double averages_after() const { return t0 + 2; }

  formula::Asgd<double> step(int64_t t, double rate, const Momenta&) const {
    const auto before = static_cast<double>(t - 1);
    const double eta = rate / std::pow(1 + lambd * rate * before, alpha);
    return {.eta = eta,
            .keep = 1 - lambd * eta,
            .mu = 1 / std::max(1.0, before - t0),
            .weight_decay = weight_decay,
            .maximize = maximize};
  }
};

}  // namespace

OptimizerType asgd() {
  return optimizer_type<Asgd>(
      "asgd",
      "Averaged SGD (Polyak & Juditsky 1992): smaller and smaller steps, and the average "
      "of the weights.");
}

}  // namespace dpt::optimizers
