// Splits a model into the units to which PyTorch users apply fully_shard: blocks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "layers/model.h"

namespace dpt {

// The names of the units in the order of the model: each entry of `model`, and each block in a list
// of at least two entries that are all blocks, such as the copies of `repeat`. A parameter belongs
// to the unit with the longest name that is a prefix of its own.
std::vector<std::string> message_units(const std::vector<ModelItem>& model);

// The index of the unit of a parameter. REQUIRES: the parameter is one of the units' model.
size_t unit_of(const std::vector<std::string>& units, const std::string& parameter);

}  // namespace dpt
