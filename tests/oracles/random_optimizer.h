// An optimizer for random specs.
#pragma once

#include <string>

#include "oracles/random_numbers.h"

namespace dpt {

// "{sgd: {...}}", with a rate at which a sum over a batch does not diverge, either.
std::string random_optimizer(RandomNumbers& random);

}  // namespace dpt
