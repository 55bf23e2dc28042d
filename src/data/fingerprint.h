// Fingerprints of a data set: whether hosts that each have their own copy have the same samples,
// and whether a run that is evaluated or resumed still has its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/dataset.h"

namespace dpt {

// 64 hexadecimal digits: a SHA-256 of sizes, types and up to 64 samples with their targets, spread
// evenly over the set. Equal data sets have equal fingerprints; those that differ in other samples
// only may have, too. May read files. Throws Error{data} like SampleReader.
std::string fingerprint(const Dataset& data);

// 16 hexadecimal digits: a hash of all samples and targets in memory, at some GB/s. Of samples that
// a reader makes: of the targets and SampleReader::fingerprint(). Empty if the data set was not
// made (LoadQuery::sizes_only).
std::string full_fingerprint(const Dataset& data);
// The same of sample numbers in their order; empty: there are none.
std::string fingerprint_of_rows(std::span<const uint32_t> rows);

}  // namespace dpt
