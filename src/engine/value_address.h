// Where a value lies in the memory that a program is bound to: the same rule on CPUs and GPUs.
#pragma once

#include <cstddef>

#include "graph/program/program.h"

namespace dpt {

// The first byte of each arena, on one device. Null: the arena is not here.
struct ArenaStarts {
  std::byte *weights = nullptr, *gradients = nullptr, *sums = nullptr;
  std::byte *activations = nullptr, *scratch = nullptr;  // of the location's stage
  std::byte* constants = nullptr;
};

// The address of a location; null if its arena is not here, or if nothing uses the value.
inline std::byte* address_of(const Location& location, const ArenaStarts& starts) {
  const auto inside = [&](std::byte* begin) { return begin ? begin + location.offset : nullptr; };
  switch (location.arena) {
    case Arena::weights:
      return inside(starts.weights);
    case Arena::gradients:
      return inside(starts.gradients);
    case Arena::sums:
      return inside(starts.sums);
    case Arena::activations:
      return inside(starts.activations);
    case Arena::scratch:
      return inside(starts.scratch);
    case Arena::constants:
      return inside(starts.constants);
    case Arena::none:
      break;
  }
  return nullptr;
}

}  // namespace dpt
