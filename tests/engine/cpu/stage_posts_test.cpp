// How many operations of another device a worker waits for.
#include "engine/cpu/stage_posts.h"

#include <doctest/doctest.h>

#include "engine/cpu/one_worker.h"

namespace dpt {
namespace {

TEST_CASE("an operation is done when as many were posted as the list has up to it") {
  const std::vector<StageOp> ops = {{.stage = 1, .chunk = 0},
                                    {.stage = 1, .chunk = 0, .backward = true},
                                    {.stage = 1, .chunk = 1}};
  CHECK(posts_until(ops, ops[0]) == 1);
  CHECK(posts_until(ops, ops[1]) == 2);
  CHECK(posts_until(ops, ops[2]) == 3);
}

TEST_CASE("a worker waits for posts of this pass, behind those of all before") {
  OneWorker one(kTinySpec, {"parallel={pipeline: {stages: 2, chunks: 2, cut: '1'}}"});
  REQUIRE(one.worker.on_device(1) == 1);
  StagePosts posts(one.worker);
  const PipelineSchedule& schedule = one.session->plan.schedule;
  const size_t all = schedule[1].size();
  const auto post = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) one.team.post(1);
  };
  // The last operation of device 1: the wait returns only because all are posted.
  const StageOp& last = schedule[1].back();
  const PlanStep wait{.op = PlanOp::wait,
                      .part = last.backward ? Part::backward : Part::forward,
                      .stage = last.stage,
                      .chunk = last.chunk,
                      .device = 1};
  for (int pass = 0; pass < 2; ++pass) {
    post(all);
    posts.wait_for(wait);
    posts.end_step();
  }
  posts.wait_for_test(0, 0);  // its own stage
  post(2);
  posts.wait_for_test(1, 1);  // the second batch
  posts.end_evaluation(2);
}

}  // namespace
}  // namespace dpt
