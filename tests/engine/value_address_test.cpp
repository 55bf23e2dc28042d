// Where values lie.
#include "engine/value_address.h"

#include <doctest/doctest.h>

namespace dpt {
namespace {

TEST_CASE("a value lies behind the start of its arena") {
  std::byte memory[60] = {};
  const ArenaStarts starts{.weights = memory,
                           .gradients = memory + 10,
                           .sums = memory + 20,
                           .activations = memory + 30,
                           .scratch = memory + 40,
                           .constants = memory + 50};
  const auto at = [&](Arena arena) {
    return address_of({.arena = arena, .offset = 3}, starts) - memory;
  };
  CHECK(at(Arena::weights) == 3);
  CHECK(at(Arena::gradients) == 13);
  CHECK(at(Arena::sums) == 23);
  CHECK(at(Arena::activations) == 33);
  CHECK(at(Arena::scratch) == 43);
  CHECK(at(Arena::constants) == 53);
}

TEST_CASE("a value that nothing uses, or whose arena is elsewhere, has no address") {
  std::byte memory[10] = {};
  CHECK(address_of({.arena = Arena::none, .offset = 3}, {.weights = memory}) == nullptr);
  CHECK(address_of({.arena = Arena::scratch, .offset = 3}, {.weights = memory}) == nullptr);
}

}  // namespace
}  // namespace dpt
