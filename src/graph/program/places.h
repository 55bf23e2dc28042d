// Where the values of a program lie.
#pragma once

#include "graph/program/program.h"

namespace dpt {

// The order in which parts run.
inline constexpr Part kParts[] = {Part::prologue, Part::forward, Part::loss, Part::backward,
                                  Part::update};

// Fills in p.place and the sizes of all memories: parameters and stored gradients as in the flat
// buffers, activations so that two share memory where no instruction needs both. in_flight: as of
// compile(). REQUIRES: p.extent is known.
void place_values(Program& p, const FlatLayout& layout, bool in_flight);

}  // namespace dpt
