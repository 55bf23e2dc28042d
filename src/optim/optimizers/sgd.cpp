// sgd: stochastic gradient descent with momentum, as torch.optim.SGD. The momentum buffer
// accumulates gradients, not steps as in Sutskever et al., 2013, and starts with the first
// gradient.
#include "optim/optimizers/optimizer_type.h"

namespace dpt::optimizers {
namespace {

struct Sgd {
  static constexpr Usage kUsage{"torch.optim.SGD",
                                "optimizer: {sgd: 0.1}\n"
                                "optimizer: {sgd: {lr: 0.1, momentum: 0.9, dampening: 0, "
                                "weight_decay: 0.0001, nesterov: true,\n"
                                "    maximize: false}}"};

  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;

  static constexpr bool kHasMomentum = true;

  static KeyTable<Sgd> keys() {
    return KeyTable<Sgd>()
        .optional("lr", &Sgd::lr, "learning rate", kNotNegative)
        .optional("momentum", &Sgd::momentum, "momentum factor", kNotNegative)
        .optional("dampening", &Sgd::dampening,
                  "share of the gradient that is not added to the momentum buffer")
        .optional("weight_decay", &Sgd::weight_decay, "L2 penalty, added to the gradient",
                  kNotNegative)
        .optional("nesterov", &Sgd::nesterov, "whether to use Nesterov momentum")
        .optional("maximize", &Sgd::maximize,
                  "whether to maximize the loss instead of minimizing it");
  }

  static void check(const Sgd& s, const Owner& owner, Diagnostics& d) {
    if (s.nesterov && (s.momentum <= 0 || s.dampening != 0))
      d.error(owner.at("nesterov"), "'nesterov' requires a momentum and zero dampening");
  }

  std::vector<std::string> states(bool cycles_momentum) const {
    if (momentum == 0 && !cycles_momentum) return {};
    return {"momentum_buffer"};
  }

  formula::Sgd<double> step(int64_t t, double rate, const Momenta& momenta) const {
    return {.lr = rate,
            .momentum = momentum_of(momenta, t, momentum),
            .one_minus_dampening = 1 - dampening,
            .weight_decay = weight_decay,
            .nesterov = nesterov,
            .maximize = maximize,
            .first_step = t == 1};
  }
};

}  // namespace

OptimizerType sgd() {
  return optimizer_type<Sgd>("sgd", "Stochastic gradient descent, with or without momentum.");
}

}  // namespace dpt::optimizers
