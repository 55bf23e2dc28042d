#include "base/count.h"

#include <cstdint>

#include <doctest/doctest.h>

namespace dpt {

TEST_CASE("a number with its noun is singular for one alone") {
  CHECK(counted(1, "rank") == "1 rank");
  CHECK(counted(0, "rank") == "0 ranks");
  CHECK(counted(size_t{2}, "rank") == "2 ranks");
  CHECK(counted(int64_t{1}, "entry", "entries") == "1 entry");
  CHECK(counted(3, "entry", "entries") == "3 entries");
}

}  // namespace dpt
