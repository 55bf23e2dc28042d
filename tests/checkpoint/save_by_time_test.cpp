// Checkpoints by the clock: after whole steps, the same one on all workers, without a trace in what
// is computed.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "checkpoint/resumed_run.h"

namespace dpt {
namespace {

// So little time has passed after each step; 0 would be never.
const Words kEachStep = {"save={every_minutes: 1e-12, keep: 100}"};

TEST_CASE("a checkpoint is due once so many minutes are over since the last") {
  const Straight each(with(kShort, kEachStep), kFiveSteps);
  CHECK(steps_in(each.folder.file("run/checkpoints")) == Steps{6, 5, 4, 3, 2, 1});
  for (const char* never :
       {"save={keep: 9}", "save={keep: 9, every_minutes: 0}", "save={keep: 9, every_minutes: null}",
        "save={keep: 9, every_minutes: 60}"}) {
    CAPTURE(never);
    const Straight few(with(kShort, {never}), kFiveSteps);
    CHECK(steps_in(few.folder.file("run/checkpoints")) == Steps{6});
  }
  const Folder folder;
  Quick disk;
  const Ran bad = run_spec_in({folder.path(), "", &disk}, kFiveSteps,
                              with(kShort, {"save={every_minutes: -1}"}));
  CHECK(bad.code == 2);
  CHECK_MESSAGE(has(bad.err, "'every_minutes' must not be negative"), bad.err);
}

TEST_CASE("by time, too, all workers save after the same step, and no bit changes") {
  const std::string pipeline = "parallel={pipeline: {stages: 2, chunks: 2, ";
  for (const Words& how : std::vector<Words>{
           {"cores=2"},
           {"cores=1", "precision={fp16: {emulate: true, init_scale: 1e9}}",
            "optimizer={sgd: 0.05}", "random=torch"},
           {"parallel=dp", "devices=2", "cores=1"},
           {"parallel=ddp", "devices=2", "cores=1"},
           {"parallel={ddp: {shard: optimizer, compress: bf16}}", "devices=2", "cores=1"},
           {pipeline + "processes: true}}", "cores=1"}}) {
    if (!kCanFork && (has(how[0], "ddp") || has(how[0], "processes"))) continue;
    CAPTURE(how[0]);
    const Straight each(with(how, kEachStep));
    CHECK(steps_in(each.folder.file("run/checkpoints")).size() == 15);
    const Folder folder;
    same(each.ran, run_spec_in({folder.path()}, kFiveSteps, with(how, {"save=false"})));
    same(each.ran, each.rest(7, how));
  }
}

}  // namespace
}  // namespace dpt
