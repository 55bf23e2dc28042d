#include "base/status_line.h"

#include <algorithm>

#include <doctest/doctest.h>
#include <unistd.h>

namespace dpt {
namespace {

TEST_CASE("a status line leaves the least important fields out, and never fills the last column") {
  const std::vector<StatusField> fields = {
      {"one", 0, {}}, {"", 2, 0.5}, {"three", 1, {}}, {"four", 3, {}}};
  CHECK(fit_fields(fields, 100) == "one  [===============               ]  three  four");
  CHECK(fit_fields(fields, 29) == "one  [====    ]  three  four");
  CHECK(fit_fields(fields, 28) == "one  [======       ]  three");  // the bar takes what is left
  CHECK(fit_fields(fields, 23) == "one  [====    ]  three");
  CHECK(fit_fields(fields, 22) == "one  three");
  CHECK(fit_fields(fields, 10) == "one");
  CHECK(fit_fields(fields, 3) == "on");
  for (int columns = 0; columns < 60; ++columns)
    CHECK(static_cast<int>(fit_fields(fields, columns).size()) <= std::max(0, columns - 1));
  CHECK(fit_fields({}, 80).empty());
  CHECK(fit_fields({{"", 0, 1.5}}, 11) == "[========]");
  CHECK(fit_fields({{"", 0, -1}}, 11) == "[        ]");
}

TEST_CASE("the width of what is no terminal is 80") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK(terminal_columns(ends[1]) == 80);
  CHECK(terminal_columns(ends[1], 0) == 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("short numbers and durations") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(230000) == "230,000");
  CHECK(grouped(-1234567) == "-1,234,567");
  CHECK(rounded_short(8.3249) == "8.32");
  CHECK(rounded_short(999.4) == "999");
  CHECK(rounded_short(999.6) == "1k");
  CHECK(rounded_short(91760) == "91.8k");
  CHECK(rounded_short(2.5e6) == "2.5M");
  CHECK(clock_duration(-1) == "0:00");
  CHECK(clock_duration(59.9) == "0:59");
  CHECK(clock_duration(60) == "1:00");
  CHECK(clock_duration(3753) == "1:02:33");
  CHECK(clock_duration(360000) == "4d 04h");
  CHECK(samples_per_second(229999.6) == "230,000 samples/s");
  CHECK(samples_per_second(8.3249) == "8.32 samples/s");
}

}  // namespace
}  // namespace dpt
