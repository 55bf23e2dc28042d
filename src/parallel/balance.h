// Splits a chain into parts of about equal cost.
#pragma once

#include <vector>

namespace dpt {

// Assigns each link of a chain to a part, in ascending order from 0. Parts are non-empty runs of
// consecutive links. The most expensive part is as cheap as possible; under this condition, earlier
// parts are as expensive as possible. REQUIRES: 1 <= parts <= cost.size(); costs are not negative.
std::vector<int> balance(const std::vector<double>& cost, int parts);

}  // namespace dpt
