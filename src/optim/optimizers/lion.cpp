// lion: the sign of an averaged gradient (Chen et al., 2023, algorithm 2), as in google/automl.
// PyTorch has no such optimizer.
#include "optim/optimizers/betas.h"

namespace dpt::optimizers {
namespace {

struct Lion {
  static constexpr Usage kUsage{
      "",
      "optimizer: {lion: 0.0001}\n"
      "optimizer: {lion: {lr: 0.0001, betas: [0.95, 0.98], weight_decay: 0.1}}"};
  static constexpr std::string_view kTorchName = "Lion";
  static constexpr std::string_view kTorchClass = R"py(class Lion(optim.Optimizer):
    """Chen et al., 2023, algorithm 2."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                if not self.state[p]:
                    self.state[p]["exp_avg"] = torch.zeros_like(p)
                exp_avg = self.state[p]["exp_avg"]
                p.mul_(1 - group["lr"] * group["weight_decay"])
                direction = exp_avg * beta1 + p.grad * (1 - beta1)
                p.add_(direction.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(p.grad, alpha=1 - beta2)
        return loss
)py";

  double lr = 1e-4;
  std::vector<double> betas = {0.9, 0.99};
  double weight_decay = 0;

  static constexpr bool kHasMomentum = true;

  static KeyTable<Lion> keys() {
    using S = Lion;
    return KeyTable<Lion>()
        .optional("lr", &S::lr, "learning rate", kNotNegative)
        .optional("betas", &S::betas,
                  "share of the average in the direction of a step, and decay rate of the average",
                  kBelowOne)
        .optional("weight_decay", &S::weight_decay,
                  "decoupled weight decay: each step multiplies weights by 1 - lr * weight_decay",
                  kNotNegative);
  }

  static void check(const Lion& s, const Owner& owner, Diagnostics& d) {
    check_betas(s.betas, owner, d);
  }

  std::vector<std::string> states(bool) const { return {"exp_avg"}; }

  formula::Lion<double> step(int64_t t, double rate, const Momenta& momenta) const {
    const double beta1 = momentum_of(momenta, t, betas[0]);
    return {.lr = rate,
            .beta1 = beta1,
            .one_minus_beta1 = 1 - beta1,
            .beta2 = betas[1],
            .one_minus_beta2 = 1 - betas[1],
            .keep = 1 - rate * weight_decay};
  }
};

}  // namespace

OptimizerType lion() {
  return optimizer_type<Lion>(
      "lion", "Lion (Chen et al. 2023): steps of one size by the sign of the averaged gradient.");
}

}  // namespace dpt::optimizers
