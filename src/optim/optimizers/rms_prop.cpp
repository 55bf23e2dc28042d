// rms_prop: divides the gradient by the root of the average of its squares (Hinton, lecture 6e),
// optionally by the root of its variance (centered; Graves, 2013), as torch.optim.RMSprop.
#include "optim/optimizers/optimizer_type.h"

namespace dpt::optimizers {
namespace {

struct RmsProp {
  static constexpr Usage kUsage{
      "torch.optim.RMSprop",
      "optimizer: {rms_prop: 0.01}\n"
      "optimizer: {rms_prop: {lr: 0.01, alpha: 0.9, eps: 1e-8, weight_decay: 0.01, momentum: 0.9,\n"
      "    centered: true, maximize: false}}"};

  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;

  static constexpr bool kHasMomentum = true;

  static KeyTable<RmsProp> keys() {
    using S = RmsProp;
    return KeyTable<RmsProp>()
        .optional("lr", &S::lr, "learning rate", kNotNegative)
        .optional("alpha", &S::alpha, "decay rate of the average of squared gradients",
                  kNotNegative)
        .optional("eps", &S::eps, "small number added to the denominator", kNotNegative)
        .optional("weight_decay", &S::weight_decay, "L2 penalty, added to the gradient",
                  kNotNegative)
        .optional("momentum", &S::momentum, "momentum factor", kNotNegative)
        .optional("centered", &S::centered,
                  "whether to divide by the standard deviation instead of the root mean square")
        .optional("maximize", &S::maximize,
                  "whether to maximize the loss instead of minimizing it");
  }

  std::vector<std::string> states(bool cycles_momentum) const {
    const bool moves = momentum > 0 || cycles_momentum;
    if (centered) return {"square_avg", moves ? "momentum_buffer" : "", "grad_avg"};
    if (moves) return {"square_avg", "momentum_buffer"};
    return {"square_avg"};
  }

  formula::RmsProp<double> step(int64_t t, double rate, const Momenta& momenta) const {
    return {.lr = rate,
            .alpha = alpha,
            .one_minus_alpha = 1 - alpha,
            .eps = eps,
            .momentum = momentum_of(momenta, t, momentum),
            .weight_decay = weight_decay,
            .centered = centered,
            .maximize = maximize};
  }
};

}  // namespace

OptimizerType rms_prop() {
  return optimizer_type<RmsProp>("rms_prop",
                                 "RMSprop: gradients divided by the root of their average square.");
}

}  // namespace dpt::optimizers
