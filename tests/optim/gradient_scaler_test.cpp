#include "optim/gradient_scaler.h"

#include <doctest/doctest.h>

namespace dpt {

TEST_CASE("an overflow halves the scale and starts the count anew, as torch's") {
  GradientScaler s({.on = true});
  CHECK(s.scale() == 65536);
  s.update(false);
  CHECK(s.scale() == 65536);
  CHECK(s.growth_tracker() == 1);
  s.update(true);
  CHECK(s.scale() == 32768);
  CHECK(s.growth_tracker() == 0);
  CHECK(s.skipped() == 1);
  s.update(false);
  CHECK(s.scale() == 32768);
}

TEST_CASE("the scale grows after growth_interval steps without an overflow") {
  GradientScaler s({.on = true, .init_scale = 8, .growth_interval = 3});
  s.update(false);
  s.update(false);
  s.update(true);  // begins again
  CHECK(s.scale() == 4);
  for (int i = 0; i < 2; ++i) s.update(false);
  CHECK(s.scale() == 4);
  s.update(false);
  CHECK(s.scale() == 8);
  CHECK(s.growth_tracker() == 0);
}

TEST_CASE("there is no lower bound, and infinity is not reached") {
  GradientScaler s({.on = true, .init_scale = 1});
  for (int i = 0; i < 20; ++i) s.update(true);
  CHECK(s.scale() == 0x1p-20);
  CHECK(s.skipped_in_a_row() == 20);
  s.update(false);
  CHECK(s.skipped_in_a_row() == 0);
  CHECK(s.skipped() == 20);
  GradientScaler high({.on = true, .init_scale = 0x1p127, .growth_interval = 1});
  high.update(false);
  CHECK(high.scale() == 0x1p127);
}

TEST_CASE("where it is off the scale is 1") {
  GradientScaler s({});
  s.update(true);
  CHECK(s.scale() == 1);
  CHECK(s.skipped() == 0);
}

}  // namespace dpt
