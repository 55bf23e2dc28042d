#include "report/host_table.h"

#include <doctest/doctest.h>

#include "golden_text.h"
#include "report/sessions_on_hosts.h"

namespace dpt {
namespace {

const std::string kSpec = R"(
data:
  dataset: {synthetic_images: {samples: 8192, shape: [1, 32, 32]}}
  transforms: [to_tensor]
  batch_size: 512
model: [flatten, {linear: 1000}, relu, {linear: 1000}, relu, {linear: 10}]
loss: cross_entropy
optimizer: {adam: 0.1}
epochs: 1
cores: 1
parallel: ddp
)";

std::string table(const std::vector<int>& hosts, const LinkModel& link,
                  const std::vector<std::string>& overrides = {}) {
  const auto one = session_on_hosts(kSpec, 1, overrides);
  REQUIRE(one);
  const auto row_of = [&](int n) {
    HostRow out{.hosts = n, .refused = too_many_hosts(*one, n)};
    if (!out.refused.empty()) return out;
    const auto s = session_on_hosts(kSpec, n, overrides);
    REQUIRE(s);
    return host_row(*s, costs_per_sample(*s, n == 1 ? 0 : 0.5e-3, 4e-3 / n), link);
  };
  const HostRow alone = row_of(1);
  std::string out = host_table_head(*one, link, "AMD EPYC");
  std::vector<HostRow> rows;
  for (const int n : hosts) {
    rows.push_back(row_of(n));
    out += host_row_text(rows.back(), alone);
  }
  return out + host_table_end(*one, rows);
}

}  // namespace

TEST_CASE("the table of hosts") {
  const std::string text =
      table({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}, parse_link("10GbE"));
  check_golden(text, "report/golden/host_table.txt");
  for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
    CHECK(text.find('\n', begin) - begin <= 80);
}

TEST_CASE("a disturbed round does not make hosts more efficient") {
  const auto one = session_on_hosts(kSpec, 1);
  REQUIRE(one);
  const auto row = [](int hosts, double seconds) {
    return HostRow{.hosts = hosts, .samples = 1, .direct = {.local = seconds}, .ring = {}};
  };
  // Another program doubles the time of one host in the second round.
  const HostRow alone = median_row({row(1, 1), row(1, 2), row(1, 1.04)});
  const HostRow two = median_row({row(2, 0.52), row(2, 0.52), row(2, 0.52)});
  CHECK(alone.direct.local == 1.04);
  CHECK(alone.spread == doctest::Approx(0.5 / 1.04));
  CHECK(two.spread == 0);
  CHECK(has(host_row_text(two, alone), "     2.00x  100 +-48 %"));
  const HostRow three = row(3, 0.3);
  CHECK(has(host_row_text(three, alone), "     3.47x       116 %"));
  const auto end = [&](const HostRow& last) {
    return host_table_end(*one, std::vector{alone, last});
  };
  CHECK_FALSE(has(end(two), "above 100 %"));
  CHECK(has(end(three), "\nabove 100 %: the smaller share of a host fits better into its caches"));
}

TEST_CASE("hosts without samples or shards are refused with the reason") {
  const auto one = session_on_hosts(kSpec, 1);
  CHECK(too_many_hosts(*one, 512).empty());
  CHECK(too_many_hosts(*one, 513) ==
        "512 samples a step are fewer than the 513 shards of 513 hosts");
  const auto shards = session_on_hosts(kSpec, 1, {"reproducible=8"});
  CHECK(too_many_hosts(*shards, 8).empty());
  CHECK(too_many_hosts(*shards, 9) == "reproducible: 8 gives work to at most 8 hosts");
  // A long reason, which the caller found, goes on in the next line.
  CHECK(host_row_text({.hosts = 16,
                       .refused = "batch_size 100 cannot be split evenly across 16 ranks; use 96 "
                                  "or 112, or give batch_size_per_replica"},
                      {}) ==
        "   16  refused: batch_size 100 cannot be split evenly across 16 ranks; use 96 or\n"
        "       112, or give batch_size_per_replica\n");
}

}  // namespace dpt
