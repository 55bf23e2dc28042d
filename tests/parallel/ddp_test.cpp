#include <doctest/doctest.h>

#include "parallel/plans.h"

namespace dpt {

TEST_CASE("ddp's plan is single's: what differs is whom a meeting spans") {
  CHECK(planned("ddp", "", {.devices = 2, .machine_cores = 2}) ==
        planned("single", "", {.machine_cores = 2}));
}

TEST_CASE("a device is a rank, and ranks that were started are taken as they are") {
  const ModeType& ddp = mode_named("ddp");
  const Topology two = ddp.topology({}, {.devices = 2, .machine_cores = 4});
  CHECK(two.ranks == 2);
  CHECK(two.workers == 2);
  CHECK(ddp.topology({}, {.machine_cores = 4, .world = 3}).ranks == 3);
  CHECK_THROWS_WITH_AS(ddp.topology({}, {.devices = 2, .world = 3}),
                       "`devices` says 2, but 3 ranks were started; leave `devices` out", Error);
}

TEST_CASE("reproducible shards do not depend on the number of ranks") {
  const ModeType& ddp = mode_named("ddp");
  const Topology who = ddp.topology({}, {.devices = 3, .shards = 8});
  CHECK(who.shards == 8);
  CHECK(who.reproducible);
}

}  // namespace dpt
