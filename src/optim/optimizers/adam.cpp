// adam: Kingma and Ba, 2015, algorithm 1, with amsgrad (Reddi et al., 2018), as torch.optim.Adam.
#include "optim/optimizers/adam_settings.h"

namespace dpt::optimizers {
namespace {

struct Adam : AdamSettings {
  static constexpr Usage kUsage{
      "torch.optim.Adam",
      "optimizer: {adam: 0.001}\n"
      "optimizer: {adam: {lr: 0.001, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.01,\n"
      "    amsgrad: true, decoupled_weight_decay: true, maximize: false}}"};
  static KeyTable<Adam> keys() {
    KeyTable<Adam> table;
    return add_last_keys(add_amsgrad(add_first_keys(table)));
  }
};

}  // namespace

OptimizerType adam() {
  return optimizer_type<Adam>(
      "adam",
      "Adam (Kingma & Ba 2015): averages of the gradient over the root of averages "
      "of its square.");
}

}  // namespace dpt::optimizers
