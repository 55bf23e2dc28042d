// How hosts of several GPUs wait for each other.
#include "engine/gpu/team.h"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cuda/fake_api.h"
#include "backend/cuda/fake_world.h"
#include "base/fail.h"
#include "comm/shared_memory.h"

namespace dpt {
namespace {

using cuda::FakeApi;

// What went wrong in each worker of a replica each, threads of one rank.
std::vector<std::string> in_workers(
    int workers, double stuck_s,
    const std::function<void(GpuTeam& gpus, cuda::FakeWorld& world, int worker)>& f) {
  const TeamShape shape{.ranks = 1, .workers_per_rank = workers};
  const SharedMemory memory =
      SharedMemory::create_private(Team::bytes(shape) + GpuTeam::bytes(workers));
  const Team team = Team::create(memory.span().first(Team::bytes(shape)), shape);
  cuda::FakeWorld world;
  std::vector<std::string> wrong(static_cast<size_t>(workers));
  {
    std::vector<std::jthread> threads;
    for (int w = 0; w < workers; ++w)
      threads.emplace_back([&, w] {
        GpuTeam gpus(team, w, 1,
                     {.shared = memory.data() + Team::bytes(shape), .stuck_s = stuck_s});
        try {
          f(gpus, world, w);
        } catch (const Error& e) {
          wrong[static_cast<size_t>(w)] = e.what();
        }
      });
  }
  return wrong;
}

TEST_CASE("patience with other ranks is counted from the call that waits for them") {
  constexpr double kStuck = 0.5;
  const auto wrong = in_workers(2, kStuck, [&](GpuTeam& gpus, cuda::FakeWorld& world, int w) {
    FakeApi api({.index = w, .world = &world});
    const auto stream = api.make_stream();
    const cuda::DeviceBuffer x(api, cuda::MemoryKind::device, 64);
    const auto all = gpus.join_peers(api);
    stream->fill(x.data(), 0, 64);
    // As long as an evaluation takes, in which no step begins.
    std::this_thread::sleep_for(std::chrono::duration<double>(kStuck + 0.1));
    gpus.barrier();
    all->all_reduce(*stream, x.data(), 16, DType::f32);
    stream->synchronise();
    all->finish();
  });
  CHECK(wrong == std::vector<std::string>(2));
}

}  // namespace
}  // namespace dpt
