// The evaluation on CPUs computes what its definition says, in whatever way batches move.
#include "engine/cpu/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/cpu/two_workers.h"
#include "engine/evaluated_by_hand.h"
#include "engine/some_weights.h"

namespace dpt {
namespace {

Evaluation evaluate(StageRunner& r, std::vector<int64_t>* done = nullptr) {
  CpuEvaluation evaluation(r.worker, r.bindings, r.sync_points, r.posts, nullptr);
  return evaluation.run([&](int64_t batches) {
    if (done) done->push_back(batches);
  });
}

void check(const Evaluation& found, const Evaluation& expected) {
  CHECK(found.loss == doctest::Approx(expected.loss).epsilon(kEvaluatedTolerance));
  CHECK(found.accuracy == expected.accuracy);
}

TEST_CASE("loss and accuracy are means over samples, also where the last batch is smaller") {
  OneWorker one(kTinySpec, {"evaluate.batch_size=4"});  // 4, 4 and 2 of 10 samples
  set_some_weights(*one.session, one.buffers);
  StageRunner r{one.worker};
  const Evaluation expected = evaluated_by_hand(*one.session);
  // Equal weights of the three batches would be seen.
  REQUIRE(std::abs(mean_of_batch_means(*one.session, 4) - expected.loss) >
          100 * kEvaluatedTolerance * expected.loss);
  std::vector<int64_t> done;
  check(evaluate(r, &done), expected);
  CHECK(done == std::vector<int64_t>{1, 2, 3});
  check(evaluate(r), expected);  // nothing of the first evaluation is left
}

TEST_CASE("the weights of classes divide the loss") {
  const std::vector<double> weights = {1, 2, 3, 1, 2, 3, 1, 2, 3, 4};
  OneWorker one(kTinySpec, {"evaluate.batch_size=4",
                            "loss={cross_entropy: {weight: [1, 2, 3, 1, 2, 3, 1, 2, 3, 4]}}"});
  set_some_weights(*one.session, one.buffers);
  StageRunner r{one.worker};
  const Evaluation expected = evaluated_by_hand(*one.session, weights);
  REQUIRE(std::abs(evaluated_by_hand(*one.session).loss - expected.loss) >
          100 * kEvaluatedTolerance * expected.loss);
  check(evaluate(r), expected);
}

TEST_CASE("shards of one worker evaluate each sample once") {
  for (const char* shards : {"reproducible={shards: 2}", "reproducible={shards: 3}"}) {
    CAPTURE(shards);
    OneWorker one(kTinySpec, {"evaluate.batch_size=4", shards});
    set_some_weights(*one.session, one.buffers);
    StageRunner r{one.worker};
    check(evaluate(r), evaluated_by_hand(*one.session));
  }
}

// Each batch is one more use of the posts that order the stages.
TEST_CASE("stages on two devices evaluate to the bits of one") {
  const std::string model = "model=[flatten, {linear: 6}, tanh, {linear: 10, name: last}]";
  OneWorker one(kTinySpec, {model, "evaluate.batch_size=4"});
  set_some_weights(*one.session, one.buffers);
  StageRunner alone{one.worker};
  const Evaluation expected = evaluate(alone);
  TwoWorkers two(kTinySpec, {model, "evaluate.batch_size=4",
                             "parallel={pipeline: {stages: 2, chunks: 2, cut: last}}"});
  set_some_weights(two.session(), two.buffers());
  for (int times = 0; times < 2; ++times) {
    std::array<Evaluation, 2> found;
    two.run([&](StageRunner& r) { found[static_cast<size_t>(r.worker.number)] = evaluate(r); });
    for (const Evaluation& e : found) {
      CHECK(e.loss == expected.loss);
      CHECK(e.accuracy == expected.accuracy);
    }
  }
}

}  // namespace
}  // namespace dpt
