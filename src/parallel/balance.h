// Cuts a chain into parts of about the same cost.
#pragma once

#include <vector>

namespace dpt {

// The part of each link, ascending from 0: consecutive links, none of the parts empty, so that the
// most expensive part costs as little as can be, and the earlier parts as much as that allows.
// REQUIRES: 1 <= parts <= cost.size(); no cost is negative.
std::vector<int> balance(const std::vector<double>& cost, int parts);

}  // namespace dpt
