// The memory of a run's ranks.
#include "train/run_memory.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "engine/cpu/one_worker.h"
#include "train/run_spec.h"

namespace dpt {
namespace {

TEST_CASE("ranks that are forked work on one memory, filled as that of threads") {
  if (!kCanFork) return;
  const auto one = session_of(kTinySpec, {"cores=1"});
  const auto two = session_of(kTinySpec, {"parallel=ddp", "devices=2", "cores=1"});
  const RunMemory threads(*one);
  RunMemory forked(*two);
  CHECK(threads.fill().next() == forked.fill().next());
  const Buffers& buffers = forked.buffers();
  CHECK(std::equal(buffers.weights(), buffers.weights() + two->model.layout.total,
                   threads.buffers().weights()));
  const std::span<Trace> traces = forked.make_traces();
  CHECK(traces.size() == 2);
  const int code = forked.run_ranks([&](int rank) {
    buffers.weights()[rank] = 3;
    return 0;
  });
  CHECK(code == 0);
  CHECK(buffers.weights()[0] == 3);
  CHECK(buffers.weights()[1] == 3);
}

}  // namespace
}  // namespace dpt
