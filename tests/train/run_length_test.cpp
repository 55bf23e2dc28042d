// How long a run is: `epochs` and `steps`, alone and together.
#include <doctest/doctest.h>

#include "checkpoint/resumed_run.h"
#include "session/session.h"

namespace dpt {

TEST_CASE("epochs and steps together: the one that is reached first ends the run") {
  struct Case {
    Words words;
    int64_t steps, epochs;  // of the run; an epoch has five steps
  };
  const Case cases[] = {{{"epochs=null"}, 5, 1},
                        {{"epochs=2"}, 10, 2},
                        {{"epochs=null", "steps=7"}, 7, 2},
                        {{"epochs=3", "steps=7"}, 7, 2},
                        {{"steps=7", "epochs=3"}, 7, 2},
                        {{"epochs=1", "steps=7"}, 5, 1},
                        {{"epochs=2", "steps=10"}, 10, 2},
                        // A number of epochs that no run can have matters only where it counts.
                        {{"epochs=9223372036854775807", "steps=4"}, 4, 1},
                        {{"epochs=2", "steps=9223372036854775807"}, 10, 2}};
  for (const Case& c : cases) {
    CAPTURE(fmt::format("{}", fmt::join(c.words, " ")));
    const auto session = session_of(kFiveSteps, with({"cores=1"}, c.words));
    CHECK(session->length.steps == c.steps);
    CHECK(session->length.epochs == c.epochs);
  }
}

TEST_CASE("schedules end where the run ends, whichever key says it") {
  const Words by_step = {"cores=1", "evaluate=false", "schedule={one_cycle: 0.1}"};
  const Words by_epoch = {"cores=1", "evaluate=false", "schedule=cosine_annealing"};
  for (const Words& how : {by_step, by_epoch}) {
    CAPTURE(how.back());
    const auto ran = [&](const Words& length) { return run_spec(kFiveSteps, with(how, length)); };
    same(ran({"epochs=1"}), ran({"epochs=1", "steps=7"}));
    same(ran({"epochs=null", "steps=7"}), ran({"epochs=3", "steps=7"}));
  }
}

TEST_CASE("a run that steps ended is trained on with more, and says which key to raise") {
  const Folder folder;
  const Words how = {"cores=1", "evaluate=false", "epochs=2"};
  REQUIRE(run_spec_in({folder.path()}, kFiveSteps, with(how, {"steps=5"})).code == 0);
  const auto idle = [&](const Words& more) {
    return run_spec_in({folder.path(), "auto"}, kFiveSteps, with(how, more)).err;
  };
  CHECK(has(idle({"steps=5"}), "to train longer, set steps=N\n"));
  CHECK(has(idle({"epochs=1", "steps=5"}), "to train longer, set both epochs=N and steps=N\n"));
  CHECK(has(idle({"epochs=1", "steps=50"}), "to train longer, set epochs=N\n"));
  const Ran rest = run_spec_in({folder.path(), "auto"}, kFiveSteps, with(how, {"steps=8"}));
  same(run_spec(kFiveSteps, with(how, {"steps=8"})), rest);
}

// The product of n_adam's momenta depends on all that the schedule has set.
TEST_CASE("a run whose schedule cycles the momentum of n_adam is trained on") {
  for (const char* interval : {"step", "epoch"}) {
    CAPTURE(interval);
    const Folder folder;
    const Words how = {"cores=1", "evaluate=false", "optimizer={n_adam: 0.01}",
                       "schedule={cyclic: {base_lr: 0.001, max_lr: 0.01, step_size_up: 3}, "
                       "interval: " +
                           std::string(interval) + "}"};
    REQUIRE(run_spec_in({folder.path()}, kFiveSteps, with(how, {"epochs=1"})).code == 0);
    const Ran rest = run_spec_in({folder.path(), "auto"}, kFiveSteps, with(how, {"epochs=3"}));
    same(run_spec(kFiveSteps, with(how, {"epochs=3"})), rest);
  }
}

}  // namespace dpt
