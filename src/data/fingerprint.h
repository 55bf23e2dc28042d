// Fingerprint of a data set: whether hosts that each have their own copy have the same samples.
#pragma once

#include <string>

#include "data/dataset.h"

namespace dpt {

// 64 hexadecimal digits: a SHA-256 of sizes, types and up to 64 samples with their targets, spread
// evenly over the set. Equal data sets have equal fingerprints; those that differ in other samples
// only may have, too. May read files. Throws Error{data} like SampleReader.
std::string fingerprint(const Dataset& data);

}  // namespace dpt
