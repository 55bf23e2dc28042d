// Assigns memory to the values of a program.
#pragma once

#include "graph/program/program.h"

namespace dpt {

// The order in which the parts of a step run.
inline constexpr Part kParts[] = {Part::prologue, Part::forward, Part::loss, Part::backward,
                                  Part::update};

// Sets p.location and the size of each arena. Parameters and stored gradients lie as in the flat
// buffers. Activations share memory if their lifetimes do not overlap. in_flight: see compile().
// REQUIRES: p.batch_scaling is set.
void assign_locations(Program& p, const FlatLayout& layout, bool in_flight);

}  // namespace dpt
