#include "backend/cuda/interface/settle.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"

namespace dpt::cuda {
namespace {

// A clock that goes on by 20 us in each turn that is given up, and by what somebody sleeps.
struct FakeTime {
  struct State {
    double now = 0;
    int yields = 0, sleeps = 0;
  };
  State* state;
  double now() const { return state->now; }
  void yield() const {
    ++state->yields;
    state->now += 20e-6;
  }
  void sleep(double seconds) const {
    ++state->sleeps;
    state->now += seconds;
  }
};

TEST_CASE("a call that ends within 200 us is waited for without a sleep") {
  FakeTime::State state;
  settle([&] { return state.now < 150e-6; }, {}, FakeTime{&state});
  CHECK(state.yields == 8);
  CHECK(state.sleeps == 0);
}

TEST_CASE("a call that takes long leaves the core to others") {
  FakeTime::State state;
  double longest = 0;
  settle([&] { return state.now < 0.01; }, [&](double waited) { longest = waited; },
         FakeTime{&state});
  CHECK(state.yields <= 11);
  CHECK(state.sleeps > 100);
  CHECK(longest > 0.0099);
}

TEST_CASE("a call that is given up has a second to end") {
  for (const double ends : {0.5, 100.0}) {
    CAPTURE(ends);
    FakeTime::State state;
    const auto give_up = [](double) { throw Error(Fault::rank, "the team is broken"); };
    CHECK_THROWS_WITH_AS(settle([&] { return state.now < ends; }, give_up, FakeTime{&state}),
                         "the team is broken", Error);
    CHECK(state.now >= (ends < 1 ? ends : 1));
    CHECK(state.now < 1.001);
  }
}

TEST_CASE("what went wrong with a call is thrown at once, unless it was given up before") {
  FakeTime::State state;
  const auto fails = [&]() -> bool {
    if (state.now < 1e-3) return true;
    throw Error(Fault::rank, "NCCL: remote error");
  };
  CHECK_THROWS_WITH_AS(settle(fails, {}, FakeTime{&state}), "NCCL: remote error", Error);
  state = {};
  const auto give_up = [](double) { throw Error(Fault::rank, "the team is broken"); };
  CHECK_THROWS_WITH_AS(settle(fails, give_up, FakeTime{&state}), "the team is broken", Error);
}

}  // namespace
}  // namespace dpt::cuda
