#include <doctest/doctest.h>

#include "graph/operators/run.h"

namespace dpt {

TEST_CASE("gelu is torch's exact one") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("gelu", {x}, Gelu{})};
  CHECK(close(y.content,
              {-0.0008142017766243903, -0.00404969409489031, -0.158655253931457,
               -0.1003234185792691, 0, 0.3457312306370066, 2.99595030590511, 4.499984710470939}));
  CHECK(close(run_op("gelu_gradient", {x, ones}, Gelu{}),
              {-0.00282176035362462, -0.01194564720418392, -0.08331547058768635, 0.304626645116364,
               0.5, 0.8674951246561629, 1.011945647204184, 1.000068529161856}));
}

TEST_CASE("gelu with tanh is torch's approximation") {
  const Numbers x{f64({1, 8}), {-3.5, -3, -1, -0.25, 0, 0.5, 3, 4.5}};
  const Numbers ones{f64({1, 8}), std::vector<double>(8, 1)};
  const Numbers y{f64({1, 8}), run_op("gelu", {x}, Gelu{.tanh = true})};
  CHECK(close(y.content,
              {-0.0006161976553737403, -0.003637392081772994, -0.1588080093917232,
               -0.100324649298315, 0, 0.3457140098251439, 2.996362607918227, 4.499994863262588}));
  CHECK(close(run_op("gelu_gradient", {x, ones}, Gelu{.tanh = true}),
              {-0.002422643760116733, -0.01158416663096965, -0.08296408384578252,
               0.3046459048489396, 0.5, 0.8673699035346424, 1.01158416663097, 1.000029322270443}));
}

}  // namespace dpt
