// dptrain plan SPEC --fit SIZE: the largest batch whose memory fits.
#pragma once

#include <string>

#include "cli/spec_argument.h"

namespace dpt::commands {

// Prints the batch size, and a sentence about it to standard error. size: as parse_bytes() reads
// it. Throws Error{spec} if it cannot be read, Error{memory} if no batch fits, BadSpec if the spec
// allows no batch.
void print_fitting_batch(const LoadedSpec& loaded, const std::string& size);

}  // namespace dpt::commands
