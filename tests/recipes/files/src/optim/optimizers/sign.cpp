// sign: a step of lr against the sign of an average of gradients (Bernstein et al., 2018).
#include "optim/optimizers/optimizer_type.h"

namespace dpt::optimizers {
namespace {

struct Sign {
  static constexpr Usage kUsage{"torch.optim.Sign", "optimizer: {sign: {lr: 0.01, beta: 0.5}}"};

  double lr = 1e-3, beta = 0.9;

  static KeyTable<Sign> keys() {
    return KeyTable<Sign>()
        .optional("lr", &Sign::lr, "learning rate", kNotNegative)
        .optional("beta", &Sign::beta, "decay rate of the average", kProbability);
  }

  std::vector<std::string> states(bool) const { return {"average"}; }

  formula::Sign<double> step(int64_t, double rate, const Momenta&) const {
    return {.lr = rate, .beta = beta, .one_minus_beta = 1 - beta};
  }
};

}  // namespace

OptimizerType sign() { return optimizer_type<Sign>("sign", "Steps of the size of lr."); }

}  // namespace dpt::optimizers
