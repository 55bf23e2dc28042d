// Which steps share a captured graph.
#include "engine/gpu/captured_graphs.h"

#include <stdexcept>

#include <doctest/doctest.h>

#include "backend/cuda/fake_api.h"

namespace dpt {
namespace {

StepRows rows(std::vector<std::vector<Rows>> micro) {
  StepRows out;
  for (const auto& shards : micro) {
    out.micro.emplace_back();
    for (const Rows& r : shards) out.micro.back().push_back({.rows = r, .first_sample = r.begin});
  }
  return out;
}

TEST_CASE("a shape has the rows of all micro-batches and shards, wherever the step begins") {
  CHECK(shape_of(rows({{{0, 4}, {4, 7}}})) == StepShape{4, 0, 0, 3, 0, 4});
  StepRows later = rows({{{100, 104}}, {{104, 106}}});
  later.micro[0][0].first_sample = 0;
  later.micro[1][0].first_sample = 4;
  CHECK(shape_of(later) == StepShape{4, 0, 0, 2, 4, 4});
}

TEST_CASE("a graph is captured once for each shape, slot and number of steps") {
  cuda::FakeApi api;
  const auto stream = api.make_stream();
  CapturedGraphs graphs(*stream);
  std::vector<size_t> enqueued;
  const auto enqueue = [&](size_t step) { enqueued.push_back(step); };
  cuda::CapturedGraph* const two = &graphs.get({1, 2}, 0, 2, enqueue);
  CHECK(enqueued == std::vector<size_t>{0, 1});
  CHECK(&graphs.get({1, 2}, 0, 2, enqueue) == two);
  CHECK(enqueued.size() == 2);
  CHECK(&graphs.get({1, 2}, 1, 2, enqueue) != two);
  CHECK(&graphs.get({1, 2}, 0, 1, enqueue) != two);
  CHECK(&graphs.get({1, 3}, 0, 2, enqueue) != two);
  graphs.clear();
  graphs.get({1, 2}, 0, 2, enqueue);
  CHECK(enqueued.size() == 9);
}

TEST_CASE("a capture that fails ends, and is tried again") {
  cuda::FakeApi api;
  const auto stream = api.make_stream();
  CapturedGraphs graphs(*stream);
  CHECK_THROWS_AS(graphs.get({1}, 0, 1, [](size_t) { throw std::runtime_error("no"); }),
                  std::runtime_error);
  int times = 0;
  graphs.get({1}, 0, 1, [&](size_t) { ++times; });
  CHECK(times == 1);
}

TEST_CASE("a shape is warm when it was enqueued once") {
  cuda::FakeApi api;
  const auto stream = api.make_stream();
  CapturedGraphs graphs(*stream);
  CHECK_FALSE(graphs.warm({1}));
  CHECK(graphs.set_warm({1}));
  CHECK_FALSE(graphs.set_warm({1}));
  CHECK(graphs.warm({1}));
  CHECK_FALSE(graphs.warm({2}));
}

}  // namespace
}  // namespace dpt
