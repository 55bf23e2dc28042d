// What a session decides once, and all of its workers share.
#include "session/layout.h"

#include <doctest/doctest.h>

#include "engine/cpu/one_worker.h"

namespace dpt {
namespace {

TEST_CASE("workers refer to the shares of their session") {
  const OneWorker one(kTinySpec, {"parallel=dp", "devices=2"});
  const CpuWorker second(*one.session, one.buffers, one.team, 1);
  REQUIRE(one.session->shares.workers.size() == 2);
  CHECK(one.worker.share.data() == one.session->shares.workers[0].data());
  CHECK(second.share.data() == one.session->shares.workers[1].data());
  CHECK_FALSE(one.session->shares.hosts);
  CHECK(one.session->shares.gpus.empty());
}

TEST_CASE("on GPUs each device of a replica has its share, and activations are in its memory") {
  for (const char* mode :
       {"parallel=ddp", "parallel={pipeline: {stages: 2, chunks: 2, cut: '1'}}"}) {
    CAPTURE(mode);
    const auto s = session_of(kTinySpec, {"device=cuda", "devices=2", mode}, true);
    CHECK(std::ssize(s->shares.gpus) == s->devices.topology.devices_per_replica);
    size_t elements = 0;
    for (const GpuShare& share : s->shares.gpus) elements += share.elements();
    CHECK(elements == s->model.layout.total);
    CHECK(s->layout.buffers.activations == 0);
  }
}

TEST_CASE("the arenas of all devices are what the buffers have for activations") {
  for (const char* mode :
       {"parallel=dp", "parallel={pipeline: {stages: 2, chunks: 2, cut: '1'}}"}) {
    CAPTURE(mode);
    const auto s = session_of(kTinySpec, {mode, "devices=2", "cores=1"});
    size_t bytes = 0;
    for (int d = 0; d < s->devices.topology.devices_per_replica; ++d)
      bytes += s->layout.arenas.bytes_on(d);
    CHECK(bytes == s->layout.arenas.bytes);
    CHECK(bytes == s->layout.buffers.activations);
  }
}

}  // namespace
}  // namespace dpt
