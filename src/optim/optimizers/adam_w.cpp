// adam_w: Adam with decoupled weight decay (Loshchilov and Hutter, 2019, algorithm 2), as
// torch.optim.AdamW. The decay does not enter the moments.
#include "optim/optimizers/adam_settings.h"

namespace dpt::optimizers {
namespace {

struct AdamW : AdamSettings {
  static constexpr Usage kUsage{
      "torch.optim.AdamW",
      "optimizer: {adam_w: 0.001}\n"
      "optimizer: {adam_w: {lr: 0.001, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.01,\n"
      "    amsgrad: true, maximize: false}}"};

  AdamW() { weight_decay = 1e-2; }

  template <class Table = KeyTable<AdamW>>
  static Table keys(Table table = {}) {
    return add_keys(
        table, "decoupled weight decay: each step multiplies weights by 1 - lr * weight_decay");
  }

  formula::Adam<double> step(int64_t t, double rate, const Momenta& momenta) const {
    formula::Adam<double> scalars = moments(t, rate, momenta);
    scalars.keep = 1 - rate * weight_decay;
    return scalars;
  }
};

}  // namespace

OptimizerType adam_w() {
  return optimizer_type<AdamW>("adam_w",
                               "Adam with decoupled weight decay (Loshchilov & Hutter 2019).");
}

}  // namespace dpt::optimizers
