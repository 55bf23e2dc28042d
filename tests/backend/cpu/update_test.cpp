#include "backend/cpu/update.h"

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "graph/optimizer_step.h"

namespace dpt {
namespace {

// 10000 elements: three chunks, the last one short.
std::vector<float> values() {
  std::vector<float> x(10000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
  x[9000] = -50;
  return x;
}

double norm(double type, size_t cut) {
  const std::vector<float> x = values();
  std::vector<double> partial(3);
  norm_partials(type, x.data(), x.size(), 0, cut, partial.data());
  norm_partials(type, x.data(), x.size(), cut, 3, partial.data());
  return norm_total(type, partial.data(), partial.size());
}

TEST_CASE("norms are torch's, and do not depend on who sums which chunks") {
  double ones = 0, squares = 0;
  for (float x : values()) {
    ones += std::fabs(x);
    squares += double{x} * x;
  }
  for (size_t cut : {0u, 1u, 2u, 3u}) {
    CHECK(norm(1, cut) == ones);  // whole numbers: every order of summation is exact
    CHECK(norm(2, cut) == std::sqrt(squares));
    CHECK(norm(std::numeric_limits<double>::infinity(), cut) == 50);
    CHECK(norm(3, cut) == norm(3, 0));
  }
}

TEST_CASE("an optimizer's step reaches the formula of its kind") {
  std::vector<float> w = {1, 2}, g = {4, -8};
  const float* shards[] = {g.data()};
  UpdateArgs args;
  args.weight = w.data();
  args.shards = shards;
  args.shard_count = 1;
  args.end = 2;
  run_update(formula::Sgd<double>{.lr = 0.5}, args);
  CHECK(w == std::vector<float>{-1, 6});
}

}  // namespace
}  // namespace dpt
