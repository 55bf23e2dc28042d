// The settings of adam_w, which muon uses for parameters that are no matrices.
#pragma once

#include "optim/optimizers/adam_settings.h"

namespace dpt::optimizers {

struct AdamW : AdamSettings {
  static constexpr Usage kUsage{
      "torch.optim.AdamW",
      "optimizer: {adam_w: 0.001}\n"
      "optimizer: {adam_w: {lr: 0.001, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.01,\n"
      "    amsgrad: true, maximize: false}}"};

  AdamW() {
    weight_decay = 1e-2;
    decoupled_weight_decay = true;
  }

  static KeyTable<AdamW> keys() {
    KeyTable<AdamW> table;
    return add_last_key(add_amsgrad(add_first_keys(
        table, "decoupled weight decay: each step multiplies weights by 1 - lr * weight_decay")));
  }
};

}  // namespace dpt::optimizers
