// Ranks on fake GPUs: sums meet, and each rule is broken once.
#include "backend/cuda/fake_world.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "backend/cuda/fake_api.h"
#include "base/fail.h"

namespace dpt::cuda {
namespace {

// What went wrong in each rank, a thread each.
std::vector<std::string> in_ranks(int ranks, const std::function<void(FakeApi&, int rank)>& f) {
  FakeWorld world;
  std::vector<std::string> wrong(static_cast<size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        FakeApi api({.index = r, .world = &world});
        try {
          f(api, r);
        } catch (const Error& e) {
          wrong[static_cast<size_t>(r)] = e.what();
        }
      });
  }
  return wrong;
}

float* floats(const Memory& m) { return reinterpret_cast<float*>(m.data()); }

TEST_CASE("the buffers of all ranks become their sum, again in each launch of a graph") {
  std::vector<float> sums[3];
  const auto wrong = in_ranks(3, [&](FakeApi& api, int rank) {
    const auto stream = api.make_stream();
    const Memory x(api, MemoryKind::device, 64);
    const auto all = api.join(api.new_communicator_id(), rank, 3, {});
    stream->begin_capture();
    launch(*stream, Fill<float>{floats(x), static_cast<float>(rank + 1)}, 16);
    all->all_reduce(*stream, x.data(), 15, DType::f32);
    const auto graph = stream->end_capture();
    for (int i = 0; i < 3; ++i) {
      stream->launch(*graph);
      stream->synchronise();
      sums[rank].push_back(floats(x)[14]);
      sums[rank].push_back(floats(x)[15]);
    }
    all->broadcast(*stream, x.data(), 64, 2);
    stream->synchronise();
    sums[rank].push_back(floats(x)[15]);
    all->finish();
  });
  CHECK(wrong == std::vector<std::string>(3));
  for (int r = 0; r < 3; ++r) {
    const auto own = static_cast<float>(r + 1);
    CHECK(sums[r] == std::vector<float>{6, own, 6, own, 6, own, 3});
  }
}

TEST_CASE("ranks that call different things are caught") {
  const auto wrong = in_ranks(2, [&](FakeApi& api, int rank) {
    const auto stream = api.make_stream();
    const Memory x(api, MemoryKind::device, 64);
    const auto all = api.join(api.new_communicator_id(), rank, 2, {});
    all->all_reduce(*stream, x.data(), rank == 0 ? 16 : 15, DType::f32);
    stream->synchronise();
  });
  CHECK(wrong[0] ==
        "fake GPU: call 0 of rank 0 is all_reduce 16 x f32, but that of rank 1 is "
        "all_reduce 15 x f32");
  CHECK(wrong[1].starts_with("fake GPU: call 0 of rank 1 is all_reduce 15 x f32"));
}

TEST_CASE("what is summed on a stream of its own must have been waited for, and its sum, too") {
  const auto wrong = in_ranks(1, [](FakeApi& api, int rank) {
    const auto compute = api.make_stream(), exchange = api.make_stream();
    const auto event = api.make_event();
    const Memory x(api, MemoryKind::device, 64);
    const auto all = api.join(api.new_communicator_id(), rank, 1, {});
    const auto complaint = [&](const std::function<void()>& f) {
      try {
        f();
      } catch (const Error& e) {
        return std::string(e.what());
      }
      return std::string();
    };
    launch(*compute, Fill<float>{floats(x), 1}, 16);
    CHECK(complaint([&] { all->all_reduce(*exchange, x.data(), 16, DType::f32); }) ==
          "fake GPU: s1 overwrites in 'all_reduce 16 x f32' what s0 writes in 'Fill<float> x 16', "
          "and no event stands between them");
    compute->record(*event);
    exchange->wait(*event);
    all->all_reduce(*exchange, x.data(), 16, DType::f32);
    const Memory y(api, MemoryKind::device, 64);
    CHECK(complaint([&] {
            compute->copy(y.data(), x.data(), 64);
          }).starts_with("fake GPU: s0 reads in 'copy 64 bytes"));
  });
  CHECK(wrong[0].empty());
}

TEST_CASE("a rank that never comes is waited for until it is given up") {
  FakeWorld world;
  FakeApi api({.world = &world});
  int asked = 0;
  const auto impatient = [&] {
    if (++asked == 5) fail(Fault::rank, "enough");
  };
  CHECK_THROWS_WITH_AS(api.join(api.new_communicator_id(), 0, 2, impatient), "enough", Error);

  const auto wrong = in_ranks(2, [](FakeApi& one, int rank) {
    const auto stream = one.make_stream();
    const auto event = one.make_event();
    const Memory x(one, MemoryKind::device, 64);
    const auto all = one.join(one.new_communicator_id(), rank, 2, {});
    if (rank == 1) return;
    all->all_reduce(*stream, x.data(), 16, DType::f32);
    stream->record(*event);
    for (int i = 0; i < 100; ++i) CHECK_FALSE(event->passed());
    CHECK_NOTHROW(all->check());
    all->abort();
    CHECK(event->passed());
    CHECK_THROWS_AS(all->check(), Error);
    CHECK_THROWS_AS(all->all_reduce(*stream, x.data(), 16, DType::f32), Error);
  });
  CHECK(wrong == std::vector<std::string>(2));
}

TEST_CASE("another GPU's memory is used once its host has waited for what it does there") {
  FakeApi one({.index = 0}), other({.index = 1});
  const auto here = one.make_stream(), there = other.make_stream();
  const Memory x(one, MemoryKind::device, 64), y(other, MemoryKind::device, 64);
  launch(*here, Fill<float>{floats(x), 3}, 16);
  CHECK_THROWS_WITH_AS(there->copy(y.data(), x.data(), 64),
                       "fake GPU: s0 reads in 'copy 64 bytes, device to device' what s0 of another "
                       "GPU writes in 'Fill<float> x 16', and no waiting host stands between them",
                       Error);
  here->synchronise();
  there->copy(y.data(), x.data(), 64);
  CHECK_THROWS_AS(here->fill(x.data(), 0, 64), Error);
  there->synchronise();
  CHECK(floats(y)[15] == 3);
  CHECK_NOTHROW(here->fill(x.data(), 0, 64));
  const auto event = one.make_event();
  here->record(*event);
  CHECK_THROWS_AS(there->wait(*event), Error);
}

}  // namespace
}  // namespace dpt::cuda
