#include "report/baseline.h"

#include <doctest/doctest.h>

#include "report/numbers.h"
#include "report/results.h"

namespace dpt {

TEST_CASE("the baseline is single with the same batch and precision, else the first such row") {
  const RowResult single = result("single", 1, 8, 0.010, {.compute = 1});
  std::vector<RowResult> rows = {single, single, result("dp", 1, 8, 0.02, {.compute = 1}), single,
                                 result("dp", 2, 8, 0.02, {.compute = 1})};
  rows[0].row.batch_size = 16;
  rows[1].row.precision = "bf16";
  CHECK(&baseline_of(rows[4], rows) == &rows[3]);
  CHECK(&baseline_of(rows[3], rows) == &rows[3]);
  CHECK(&baseline_of(rows[0], rows) == &rows[0]);
  CHECK(speedup(rows[4], baseline_of(rows[4], rows)) == doctest::Approx(0.5));
  rows[3].refused = "no";
  CHECK(&baseline_of(rows[4], rows) == &rows[2]);
  rows[2].refused = "no";
  CHECK(&baseline_of(rows[4], rows) == &rows[4]);
}

TEST_CASE("N devices are ideally N times as fast, as long as they have cores or GPUs") {
  const RowResult single = result("single", 1, 64, 0.010, {.compute = 1});
  RowResult row = result("dp", 64, 64, 0.010, {.compute = 1});
  CHECK(ideal_speedup(single, single, 2) == 1);
  CHECK(ideal_speedup(row, single, 64) == 64);
  CHECK(ideal_speedup(row, single, 2) == 2);
  row.facts.gpus = 8;
  CHECK(ideal_speedup(row, single, 2) == 8);
  RowResult wide = single;  // a device of two cores
  wide.facts.workers = 2;
  row.facts.gpus = 0;
  CHECK(ideal_speedup(row, wide, 2) == 1);
  CHECK(ideal_speedup(row, wide, 16) == 8);
}

TEST_CASE("numbers have three significant digits, units that fit and no exponents") {
  CHECK(time_text(1.56) == "1.56 ms");
  CHECK(time_text(0.0064) == "6.40 us");
  CHECK(time_text(0.00025) == "250 ns");
  CHECK(time_text(0.9996) == "1.00 ms");
  CHECK(time_text(0.9993) == "999 us");
  CHECK(time_text(12000) == "12.0 s");
  CHECK(time_text(189.8) == "190 ms");
  CHECK(number_text(0) == "0");
  CHECK(number_text(6.4) == "6.40");
  CHECK(number_text(9.996) == "10.0");
  CHECK(number_text(99.96) == "100");
  CHECK(number_text(0.0512) == "0.0512");
  CHECK(number_text(0.99999) == "1.00");
  CHECK(number_text(153111) == "153111");
  CHECK(number_text(4e9) == "4000000000");
  CHECK(ratio_text(0.816) == "0.82x");
  CHECK(ratio_text(0.0163) == "0.0163x");
  CHECK(ratio_text(1.264) == "1.26x");
  CHECK(ratio_text(12.64) == "12.6x");
}

}  // namespace dpt
