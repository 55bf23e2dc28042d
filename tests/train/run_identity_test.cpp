#include "train/run_identity.h"

#include <regex>

#include <doctest/doctest.h>

namespace dpt {

TEST_CASE("each run has an id of its own that no reader takes for a number") {
  const RunIdentity a = make_run_identity(), b = make_run_identity();
  CHECK(std::regex_match(a.id, std::regex("[a-f][0-9a-f]{7}")));
  CHECK(a.id != b.id);
  CHECK(!a.host.empty());
}

}  // namespace dpt
