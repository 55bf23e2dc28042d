// The check of `betas`, which adam and its relatives have.
#pragma once

#include <vector>

#include "optim/optimizers/optimizer_type.h"

namespace dpt::optimizers {

inline void check_betas(const std::vector<double>& betas, const Owner& owner, Diagnostics& d) {
  if (betas.size() != 2)
    d.error(owner.at("betas"), "'betas' must be two numbers, as in [0.9, 0.999]");
}

}  // namespace dpt::optimizers
