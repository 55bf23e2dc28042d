// The non-finite check on CPUs finds the layer, the parameter or the sample.
#include "engine/cpu/nonfinite_search.h"

#include <array>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "engine/cpu/two_workers.h"
#include "engine/searched_spec.h"
#include "engine/some_weights.h"

namespace dpt {
namespace {

struct Searcher {
  OneWorker one;
  StageRunner r{one.worker};

  explicit Searcher(const std::vector<std::string>& how) : one(kSearchedSpec, how) {
    set_some_weights(*one.session, one.buffers);
  }
  // Weight and bias of a layer, whose sums then overflow.
  void overflow(size_t weight) {
    set_parameter(*one.session, one.buffers, weight, kHuge);
    set_parameter(*one.session, one.buffers, weight + 1, kHuge);
  }
  std::string run() {
    return CpuNonFiniteSearch(one.worker, r.bindings, r.sync_points, r.input)
        .run(one.step(0)->input)
        .where;
  }
};

TEST_CASE("the first layer whose output overflows is found, in every micro-batch") {
  for (const char* accumulate : {"accumulate=1", "accumulate=2"}) {
    Searcher s({accumulate});
    CHECK(s.run() == kNothing);
    // `last`: sums of tanh's results are far from 0 in some sample.
    s.overflow(2);
    CHECK(s.run() == first_not_finite("last", "linear"));
    s.overflow(0);
    CHECK(s.run() == first_not_finite("first", "linear"));
    set_some_weights(*s.one.session, s.one.buffers);
    CHECK(s.run() == kNothing);  // what was found before is forgotten
  }
}

TEST_CASE("a parameter that is not finite is found, whatever overflows behind it") {
  Searcher s({});
  set_parameter(*s.one.session, s.one.buffers, 0, kHuge);
  set_parameter(*s.one.session, s.one.buffers, 3, std::numeric_limits<float>::quiet_NaN());
  CHECK(s.run() == "the values of parameter 'last.bias' were not finite before the step");
}

TEST_CASE("a sample that is not finite is found with its number, and its micro-batch") {
  Searcher s({"accumulate=2"});
  set_number(s.one.session->data.train.targets, 5, std::numeric_limits<float>::infinity());
  CHECK(s.run() == "sample 5 of the training set (counted from 0) has a target that is not finite");
  CHECK(s.one.buffers.non_finite(0).instruction < 0);
  set_number(s.one.session->data.train.inputs, 6, std::numeric_limits<float>::quiet_NaN());
  CHECK(s.run() == "sample 6 of the training set (counted from 0) has an input that is not finite");
  // The second micro-batch has samples 4 to 7, and the first layer is the first to read them.
  CHECK(s.one.buffers.non_finite(0).instruction / kForward == 1);
}

TEST_CASE("layers before and after a sum over shards are told apart") {
  const std::vector<std::string> norm = {
      "model=[{linear: 6, name: first}, {batch_norm1d: null, name: norm}, {linear: 2, name: last}]",
      "reproducible={shards: 2}"};
  Searcher s(norm);
  REQUIRE(s.one.session->model.graph.sync_points(Part::forward, 0) > 0);
  CHECK(s.run() == kNothing);
  s.overflow(4);
  CHECK(s.run() == first_not_finite("last", "linear"));
  s.overflow(0);
  CHECK(s.run() == first_not_finite("first", "linear"));
}

TEST_CASE("both workers of a pipeline report what the one with the later stage found") {
  TwoWorkers two(kSearchedSpec, {"parallel={pipeline: {stages: 2, chunks: 2, cut: last}}"});
  set_some_weights(two.session(), two.buffers());
  const auto step = two.one().step(0);
  std::array<std::string, 2> found;
  const auto search = [&](StageRunner& r) {
    found[static_cast<size_t>(r.worker.number)] =
        CpuNonFiniteSearch(r.worker, r.bindings, r.sync_points, r.input).run(step->input).where;
  };
  two.run(search);
  CHECK(found[0] == kNothing);
  CHECK(found[1] == kNothing);
  set_parameter(two.session(), two.buffers(), 2, kHuge);
  set_parameter(two.session(), two.buffers(), 3, kHuge);
  two.run(search);
  CHECK(found[0] == first_not_finite("last", "linear"));
  CHECK(found[1] == found[0]);
}

}  // namespace
}  // namespace dpt
