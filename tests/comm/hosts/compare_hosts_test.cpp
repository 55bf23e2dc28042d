#include "comm/hosts/compare_hosts.h"

#include <doctest/doctest.h>

namespace dpt {
namespace {

HostHello host_of(int host, int first, int ranks) {
  return {.first_rank = first,
          .ranks = ranks,
          .world = 6,
          .host = host,
          .name = std::string("host") + static_cast<char>('a' + host),
          .address = "10.0.0.1",
          .identity = {.version = "dptrain 1.5.0",
                       .spec = "1",
                       .reproducible = false,
                       .instructions = "AVX2",
                       .onednn = "3.1"}};
}

TEST_CASE("differing hosts get one message that names both") {
  const HostHello a = host_of(0, 0, 2);
  const HostHello same = host_of(2, 4, 2);
  CHECK(difference(a, same).empty());
  HostHello c = same;
  c.identity.version = "dptrain 1.4.0";
  CHECK(difference(a, c) ==
        "host 2 (hostc) has dptrain 1.4.0, host 0 (hosta) has dptrain 1.5.0: install the same "
        "version on "
        "both");
  c.host = -1;
  CHECK(difference(a, c) ==
        "the host of rank 4 (hostc) has dptrain 1.4.0, host 0 (hosta) has dptrain 1.5.0: install "
        "the same "
        "version on both");
  c = same;
  c.world = 8;
  CHECK(difference(a, c) ==
        "host 2 (hostc) was started as part of 8 ranks, host 0 (hosta) as part of 6: start all "
        "hosts with the same numbers");
  c = same;
  c.identity.spec = "3";
  CHECK(difference(a, c) ==
        "host 2 (hostc) and host 0 (hosta) have different specs: give both the same file and "
        "overrides");
  c = same;
  c.identity.failure = "spec.yaml:1: wrong";
  CHECK(difference(a, c) ==
        "host 2 (hostc) failed before all hosts had connected: spec.yaml:1: wrong");
  for (const auto& [first, ranks] :
       {std::pair{5, 2}, {-1, 1}, {2, 0}, {2, -1}, {1 << 30, 1 << 30}}) {
    c = same;
    c.first_rank = first;
    c.ranks = ranks;
    CHECK(difference(a, c).find("but the run has 6") != std::string::npos);
  }
}

TEST_CASE("instruction sets and oneDNN matter only to reproducible runs") {
  HostHello a = host_of(0, 0, 2), c = host_of(2, 4, 2);
  c.identity.instructions = "AVX-512";
  CHECK(difference(a, c).empty());
  a.identity.reproducible = c.identity.reproducible = true;
  CHECK(difference(a, c) ==
        "host 2 (hostc) has the instruction set AVX-512, host 0 (hosta) has AVX2: `reproducible` "
        "needs the same on all hosts; use hosts of one kind, or leave out `reproducible`");
  c.identity.instructions = "AVX2";
  c.identity.onednn = "3.2";
  CHECK(difference(a, c) ==
        "host 2 (hostc) has oneDNN 3.2, host 0 (hosta) has 3.1: `reproducible` needs the same on "
        "all hosts; use hosts of one kind, or leave out `reproducible`");
}

TEST_CASE("hosts with the same ranks are found") {
  CHECK(overlap(host_of(0, 0, 2), host_of(1, 2, 2)).empty());
  CHECK(overlap(host_of(1, 2, 2), host_of(0, 0, 2)).empty());
  CHECK(overlap(host_of(1, 2, 2), host_of(2, 2, 2)) ==
        "ranks 2 to 3 were started twice, on hostb and on hostc: start each host once");
  CHECK(overlap(host_of(1, 2, 1), host_of(2, 2, 1)) ==
        "rank 2 was started twice, on hostb and on hostc: start each host once");
  CHECK(overlap(host_of(0, 0, 2), host_of(1, 1, 2)) ==
        "the ranks of a host must be consecutive, but hosta has 2 from rank 0 on, and hostb has 2 "
        "from rank 1 on: use `mpirun --map-by slot` or `srun --distribution=block`");
}

TEST_CASE("missing ranks are listed") {
  const HostHello a = host_of(0, 0, 2), b = host_of(1, 2, 1), c = host_of(2, 4, 1);
  const auto missing = [](std::vector<const HostHello*> hosts) { return missing_ranks(hosts, 6); };
  CHECK(missing({&a}) == "ranks 2 to 5");
  CHECK(missing({&c, &a}) == "ranks 2 to 3, rank 5");
  CHECK(missing({&c, &b, &a}) == "rank 3, rank 5");
  const HostHello rest = host_of(1, 2, 4);
  CHECK(missing({&a, &rest}).empty());
}

}  // namespace
}  // namespace dpt
