// The order of the non-finite check, without a device.
#include "engine/nonfinite_search.h"

#include <limits>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "engine/cpu/one_worker.h"

namespace dpt {
namespace {

class Searched final : public NonFiniteSearch {
 public:
  explicit Searched(OneWorker& one, int64_t bad = -1, size_t bad_micro = 0)
      : NonFiniteSearch(*one.session, one.buffers, one.worker.stages, {{0, 1}}),
        bad_(bad),
        bad_micro_(bad_micro) {}
  std::string events;

 private:
  void load(const StepInput&, size_t micro) override { events += fmt::format("load {}; ", micro); }
  void run_stage(const StepInput&, size_t micro, int stage) override {
    events += fmt::format("run {} {}; ", micro, stage);
    if (bad_ >= 0 && micro >= bad_micro_) record(0, micro, bad_);
  }
  void pass_on(const StepInput&, size_t, int stage) override {
    events += fmt::format("pass on {}; ", stage);
  }
  void barrier() override { events += "barrier; "; }

  int64_t bad_;
  size_t bad_micro_;
};

TEST_CASE("the search goes through micro-batches and stages, between barriers") {
  OneWorker one(kTinySpec, {"accumulate=2"});
  const auto step = one.step(0);
  Searched search(one);
  CHECK(search.run(step->input).where ==
        "every layer's output is finite, so the non-finite value comes from the loss itself");
  CHECK(search.events ==
        "barrier; load 0; run 0 0; pass on 0; load 1; run 1 0; pass on 0; barrier; barrier; ");
}

TEST_CASE("the first instruction that is found counts") {
  OneWorker one(kTinySpec, {"accumulate=2"});
  const auto step = one.step(0);
  Searched(one, 0).run(step->input);
  CHECK(one.buffers.non_finite(0).instruction == 0);
  Searched(one, 0, 1).run(step->input);  // what was found before is forgotten
  CHECK(one.buffers.non_finite(0).instruction == kForward);
}

TEST_CASE("a parameter that was not finite before the step comes first") {
  OneWorker one(kTinySpec);
  const auto step = one.step(0);
  one.buffers.weights()[one.session->model.layout.offset[1]] =
      std::numeric_limits<float>::infinity();
  CHECK(Searched(one, 0).run(step->input).where ==
        "the values of parameter '1.bias' were not finite before the step");
}

}  // namespace
}  // namespace dpt
