// A spec for each number: any layers, loss, optimizer and sizes that fit together.
#pragma once

#include <cstdint>
#include <string>

namespace dpt {

// YAML of a run of 50 steps, without a mode; the same on every machine. Nets, batches and data are
// small, their sizes seldom multiples of anything.
std::string random_spec(uint64_t seed);

}  // namespace dpt
