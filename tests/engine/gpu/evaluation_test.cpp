// The evaluation on a GPU has the CPU's numbers, launched batch by batch or by captured graphs.
#include "engine/gpu/evaluation.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/cpu/evaluation.h"
#include "engine/cpu/two_workers.h"
#include "engine/evaluated_by_hand.h"
#include "engine/gpu/gpu_runner.h"
#include "engine/some_weights.h"

namespace dpt {
namespace {

Evaluation on_cpu(const std::vector<std::string>& how) {
  OneWorker one(kTinySpec, how);
  set_some_weights(*one.session, one.buffers);
  StageRunner r{one.worker};
  return CpuEvaluation(r.worker, r.bindings, r.sync_points, r.posts, nullptr).run({});
}

struct Evaluator {
  OneGpu one;
  std::optional<GpuRunner> r;
  CapturedGraphs graphs;
  WaitForGpu wait_for = [](cuda::Event& event) { event.wait(); };
  std::optional<GpuEvaluation> evaluation;

  explicit Evaluator(const std::vector<std::string>& how)
      : one(kTinySpec, how), graphs(*one.stream) {
    set_some_weights(*one.session, one.buffers);
    r.emplace(one);
    evaluation.emplace(one.worker, r->bindings, graphs, r->test.get(), nullptr, nullptr, wait_for);
  }
  Evaluation run(const StepExecutor::BatchesDone& done = {}) { return evaluation->run(done); }
  int64_t calls_with(const std::string& word) {
    return std::ranges::count_if(one.api.take_calls(), [&](const std::string& call) {
      return call.find(word) != std::string::npos;
    });
  }
};

void check(const Evaluation& found, const Evaluation& expected) {
  CHECK(found.loss == doctest::Approx(expected.loss).epsilon(kEvaluatedTolerance));
  CHECK(found.accuracy == expected.accuracy);
}

TEST_CASE("a GPU evaluates to the CPU's numbers, with uneven batches and weighted classes") {
  for (const char* loss :
       {"loss=cross_entropy", "loss={cross_entropy: {weight: [1, 2, 3, 1, 2, 3, 1, 2, 3, 4]}}"})
    for (const char* batch : {"evaluate.batch_size=10", "evaluate.batch_size=4"}) {
      CAPTURE(loss);
      CAPTURE(batch);
      Evaluator gpu({loss, batch});
      check(gpu.run(), on_cpu({loss, batch}));
    }
  Evaluator gpu({"evaluate.batch_size=4"});
  check(gpu.run(), evaluated_by_hand(*gpu.one.session));
}

TEST_CASE("an evaluation by graphs has the bits of the one that was enqueued call by call") {
  Evaluator gpu({"evaluate.batch_size=2"});  // five batches of one shape
  Evaluator enqueued({"evaluate.batch_size=2", "graphs=false"});
  const Evaluation expected = enqueued.run();
  CHECK(enqueued.calls_with("graph of") == 0);
  for (int times = 0; times < 3; ++times) {
    CAPTURE(times);
    const Evaluation found = gpu.run();
    CHECK(found.loss == expected.loss);
    CHECK(found.accuracy == expected.accuracy);
    CHECK(gpu.calls_with("graph of") > 0);
  }
  CHECK(enqueued.run().loss == expected.loss);
}

TEST_CASE("the batches that are submitted are reported in increasing numbers, to the last") {
  Evaluator gpu({"evaluate.batch_size=4"});
  for (int times = 0; times < 2; ++times) {
    std::vector<int64_t> done;
    gpu.run([&](int64_t batches) { done.push_back(batches); });
    REQUIRE(!done.empty());
    CHECK(std::ranges::is_sorted(done));
    CHECK(done.back() == 3);
  }
}

TEST_CASE("metrics of outputs are the CPU's") {
  const std::vector<std::string> how = {"evaluate.batch_size=4",
                                        "evaluate.metrics=[accuracy, top3, f1, confusion_matrix]"};
  const Evaluation expected = on_cpu(how);
  Evaluator gpu(how);
  const Evaluation found = gpu.run();
  check(found, expected);
  REQUIRE(!expected.metrics.empty());
  REQUIRE(found.metrics.size() == expected.metrics.size());
  for (size_t i = 0; i < found.metrics.size(); ++i)
    CHECK(found.metrics[i].value == expected.metrics[i].value);  // of the same counts
  CHECK(!expected.confusion_matrix.empty());
  CHECK(found.confusion_matrix == expected.confusion_matrix);
}

TEST_CASE("evaluations keep their buffers, and wait for the batch before the one in progress") {
  Evaluator gpu({"evaluate.batch_size=2", "evaluate.metrics=[accuracy, f1]", "graphs=false"});
  const Evaluation first = gpu.run();
  const int64_t allocations = gpu.one.api.allocations();
  gpu.one.api.take_calls();
  const Evaluation second = gpu.run();
  CHECK(gpu.one.api.allocations() == allocations);
  REQUIRE(second.metrics.size() == first.metrics.size());
  for (size_t i = 0; i < first.metrics.size(); ++i)
    CHECK(second.metrics[i].value == first.metrics[i].value);
  // Of five batches: the host waits for each one's download once the next one is enqueued, and for
  // the sums at the end.
  std::string order;
  for (const std::string& call : gpu.one.api.take_calls()) {
    if (call.find("AddTestBatch") != std::string::npos) order += 'b';
    if (call.find("host waits") != std::string::npos) order += 'w';
    if (call.find("synchronise") != std::string::npos) order += 's';
  }
  CHECK(order == "bbwbwbwbwws");
}

}  // namespace
}  // namespace dpt
