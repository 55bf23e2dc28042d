// Sums of an evaluation.
#include "engine/evaluation.h"

#include <string>

#include <doctest/doctest.h>

#include "engine/cpu/one_worker.h"

namespace dpt {
namespace {

TEST_CASE("batches add their loss, and divide by terms or by the targets' weights") {
  Session s;
  s.model.terms_per_sample = 2;
  ShardResult r;
  add_evaluation(s.model, r, {.loss = 3, .weight = 100, .correct = 1}, 4);
  add_evaluation(s.model, r, {.loss = 5, .weight = 100, .correct = 2}, 1);
  CHECK(r.loss == 8);
  CHECK(r.weight == 10);
  CHECK(r.correct == 3);
  s.model.divisor = Divisor::targets;
  add_evaluation(s.model, r, {.loss = 0, .weight = 0.5, .correct = 0}, 4);
  CHECK(r.weight == 10.5);
}

TEST_CASE("an evaluation ends between two barriers with the sum over shards") {
  OneWorker one(kTinySpec);
  clear_evaluation(one.buffers, 0);
  std::string events;
  const Evaluation e = end_evaluation(*one.session, one.buffers, [&] {
    events += "barrier;";
    one.buffers.evaluation(0).loss = 6;
    one.buffers.evaluation(0).weight = 3;
    one.buffers.evaluation(0).correct = 5;
  });
  CHECK(events == "barrier;barrier;");
  CHECK(e.loss == 2);
  CHECK(e.accuracy == 0.5);  // of 10 samples
}

}  // namespace
}  // namespace dpt
