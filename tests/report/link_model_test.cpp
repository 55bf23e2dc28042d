#include "report/link_model.h"

#include <cmath>

#include <doctest/doctest.h>

#include "base/error.h"
#include "data/folder.h"

namespace dpt {
namespace {

// A reduce_scatter and an all_gather.
double sum_ms(const LinkModel& link, const Transfer& half) { return 2e3 * seconds(link, half); }

LinkModel link_of(double bandwidth) {
  return {.name = "test", .bandwidth = bandwidth, .latency = 25e-6, .per_message = 5e-6};
}

std::string error_of(std::string_view text) {
  try {
    parse_link(text);
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::spec);
    return e.what();
  }
  return "";
}

// Milliseconds of a sum over all hosts, as computed by hand, and the unit of their last digit.
struct Known {
  int hosts;
  double bytes, bandwidth, ring, ring_digit, direct, direct_digit;
};
constexpr Known kKnown[] = {
    {2, 100e6, 10e9, 10.1, 0.1, 10.1, 0.1},   {8, 100e6, 10e9, 17.9, 0.1, 17.6, 0.1},
    {32, 100e6, 10e9, 20.9, 0.1, 19.7, 0.1},  {128, 100e6, 10e9, 26, 1, 21, 1},
    {1024, 100e6, 10e9, 71, 1, 30, 1},        {2, 0.8e6, 10e9, 0.13, 0.01, 0.14, 0.01},
    {8, 0.8e6, 10e9, 0.49, 0.01, 0.26, 0.01}, {32, 0.8e6, 10e9, 1.7, 0.1, 0.52, 0.01},
    {128, 0.8e6, 10e9, 6.5, 0.1, 1.5, 0.1},   {1024, 0.8e6, 10e9, 51, 1, 10, 1},
    {2, 100e6, 1.15e9, 87, 1, 87, 1},         {8, 100e6, 1.15e9, 153, 1, 152, 1},
    {32, 100e6, 1.15e9, 170, 1, 169, 1},      {128, 100e6, 1.15e9, 179, 1, 174, 1},
    {1024, 100e6, 1.15e9, 225, 1, 184, 1},
};

}  // namespace

TEST_CASE("the time of a sum over all hosts is what was computed by hand") {
  for (const Known& k : kKnown) {
    CAPTURE(k.hosts);
    CAPTURE(k.bytes);
    CAPTURE(k.bandwidth);
    const LinkModel link = link_of(k.bandwidth);
    // Half a unit, and a hundredth for values on the boundary between two roundings.
    CHECK(std::abs(sum_ms(link, ring_transfer(k.hosts, k.bytes)) - k.ring) <= 0.51 * k.ring_digit);
    CHECK(std::abs(sum_ms(link, direct_transfer(k.hosts, k.bytes)) - k.direct) <=
          0.51 * k.direct_digit);
  }
}

TEST_CASE("a single host exchanges nothing, and more bytes take longer") {
  const LinkModel link = link_of(1e9);
  for (const auto& transfer : {direct_transfer, ring_transfer}) {
    CHECK(seconds(link, transfer(1, 1e9)) == 0);
    for (const int hosts : {2, 3, 64, 1024}) {
      CAPTURE(hosts);
      double before = 0;
      for (const double bytes : {0.0, 1.0, 1e3, 1e6, 1e9}) {
        const double now = seconds(link, transfer(hosts, bytes));
        CHECK(now > before);
        before = now;
      }
      // Both halves together: the fewest bytes that any algorithm sends.
      CHECK(2 * transfer(hosts, 1e6).bytes == doctest::Approx(2e6 * (hosts - 1) / hosts));
    }
  }
  CHECK(seconds(link, ring_transfer(64, 1e3)) > seconds(link, direct_transfer(64, 1e3)));
}

TEST_CASE("a link has a name or numbers") {
  CHECK(parse_link("10GbE").bandwidth == 1.15e9);
  CHECK(parse_link("10GbE").latency == 25e-6);
  CHECK(parse_link("1GbE").bandwidth == 0.115e9);
  CHECK(parse_link("200GbIB").latency < parse_link("100GbE").latency);
  const LinkModel two = parse_link("940Mbit/s, 0.1 ms");
  CHECK(two.name == "940Mbit/s, 0.1 ms");
  CHECK(two.bandwidth == doctest::Approx(117.5e6));
  CHECK(two.latency == doctest::Approx(1e-4));
  CHECK(two.per_message == doctest::Approx(5e-6));
  CHECK(parse_link("2GB/s,0us,250ns").per_message == doctest::Approx(250e-9));
  CHECK(link_text(parse_link("10GbE")) ==
        "10GbE: 1.15 GB/s each way, latency 25.0 us, 5.00 us per message");
  CHECK(link_text(parse_link("80MB/s,1ms")) ==
        "80MB/s,1ms: 80.0 MB/s each way, latency 1.00 ms, 5.00 us per message");
}

TEST_CASE("what is no link is refused with what to write") {
  CHECK(error_of("10GBE") ==
        "--link: unknown link '10GBE'; did you mean '10GbE'? Write one of 1GbE, 10GbE, 25GbE, "
        "100GbE, 200GbIB, or a bandwidth and a latency: 1.15GB/s,25us");
  CHECK(error_of("token ring").starts_with("--link: unknown link 'token ring'. Write one of "));
  CHECK(error_of("1.15GB/s") ==
        "--link: '1.15GB/s' has no latency; write it after a comma: 1.15GB/s,25us");
  for (const char* bandwidth : {"fast", "", "0GB/s", "-1GB/s", "1.15", "1.15GB", "infGB/s"}) {
    CAPTURE(bandwidth);
    CHECK(has(error_of(std::string(bandwidth) + ",25us"), "is not a bandwidth; write a number"));
  }
  CHECK(
      error_of("1GB/s,25") ==
      "--link: '25' in '1GB/s,25' is not a latency; write a time with its unit: 500ns, 25us, 1ms");
  CHECK(has(error_of("1GB/s,-1us"), "is not a latency"));
  CHECK(has(error_of("1GB/s,1us,x"), "'x' in '1GB/s,1us,x' is not a time per message"));
  CHECK(has(error_of("1GB/s,1us,1us,1us"), "has 4 numbers"));
}

}  // namespace dpt
