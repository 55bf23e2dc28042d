// adam_w: Adam with decoupled weight decay (Loshchilov and Hutter, 2019, algorithm 2), as
// torch.optim.AdamW. The decay does not enter the moments.
#include "optim/optimizers/adam_w.h"

namespace dpt::optimizers {

OptimizerType adam_w() {
  return optimizer_type<AdamW>("adam_w",
                               "Adam with decoupled weight decay (Loshchilov & Hutter 2019).");
}

}  // namespace dpt::optimizers
