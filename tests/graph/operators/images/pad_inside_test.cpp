#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("pad_inside has torch's elements and gradients") {
  struct Row {
    Pad::Mode mode;
    std::vector<double> y, dx;
  };
  const Row rows[] = {{Pad::Mode::reflect, {3, 2, 1, 2, 3, 4, 3, 2, 1}, {12, 14, 13, 6}},
                      {Pad::Mode::replicate, {1, 1, 1, 2, 3, 4, 4, 4, 4}, {6, 4, 5, 30}},
                      {Pad::Mode::circular, {3, 4, 1, 2, 3, 4, 1, 2, 3}, {10, 12, 15, 8}}};
  const Given x{f32({1, 1, 4}), {1, 2, 3, 4}};
  const Given dy{f32({1, 1, 9}), {1, 2, 3, 4, 5, 6, 7, 8, 9}};
  for (const Row& row : rows) {
    const Pad pad{.before = {0, 0, 2}, .behind = {0, 0, 3}, .mode = row.mode};
    CHECK(run_op("pad_inside", {x}, pad) == row.y);
    CHECK(run_op("pad_inside_gradient", {dy}, pad) == row.dx);
  }
}

TEST_CASE("pad_inside refuses more than an image has, other dimensions and negative numbers") {
  const auto wrong = [](Pad pad) { return refusal("pad_inside", {f32({1, 2, 3})}, pad); };
  CHECK(wrong({.before = {0, 0, 3}}) ==
        "pad_inside: 3 before and 0 after do not fit dimension 2 of [1, 2, 3]");
  CHECK(wrong({.before = {0, 0, 3}, .mode = Pad::Mode::circular}).empty());
  CHECK(wrong({.behind = {0, 0, 4}, .mode = Pad::Mode::circular}) ==
        "pad_inside: 0 before and 4 after do not fit dimension 2 of [1, 2, 3]");
  CHECK(wrong({.before = {0, 0, 9}, .mode = Pad::Mode::replicate}).empty());
  CHECK(wrong({.before = {0, 1, 0}}) ==
        "pad_inside: 1 before and 0 after do not fit dimension 1 of [1, 2, 3]");
  CHECK(wrong({.before = {0, 0, -1}}) ==
        "pad_inside: -1 before and 0 after do not fit dimension 2 of [1, 2, 3]");
}

}  // namespace dpt
