// Ranks on fake GPUs: sums are the same, and each rule is broken once.
#include "backend/cuda/fake_world.h"

#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "backend/cuda/fake_api.h"
#include "backend/cuda/interface/launch.h"
#include "base/fail.h"
#include "base/half.h"

namespace dpt::cuda {
namespace {

constexpr CommunicatorId kOne{"fake 0"}, kOther{"fake 1"};  // as the first GPU makes them

// What went wrong in each rank, a thread each.
std::vector<std::string> in_ranks(int ranks, const std::function<void(FakeApi&, int rank)>& f,
                                  double patience_s = 20) {
  FakeWorld world;
  std::vector<std::string> wrong(static_cast<size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        FakeApi api({.patience_s = patience_s, .index = r, .world = &world});
        try {
          f(api, r);
        } catch (const Error& e) {
          wrong[static_cast<size_t>(r)] = e.what();
        }
      });
  }
  return wrong;
}

float* floats(const DeviceBuffer& m) { return reinterpret_cast<float*>(m.data()); }

TEST_CASE("the buffers of all ranks become their sum, again in each launch of a graph") {
  std::vector<float> sums[3];
  const auto wrong = in_ranks(3, [&](FakeApi& api, int rank) {
    const auto stream = api.make_stream();
    const DeviceBuffer x(api, MemoryKind::device, 64);
    const auto all = api.join(kOne, rank, 3, {});
    launch(*stream, Fill<float>{floats(x), 1}, 16);
    all->all_reduce(*stream, x.data(), 15, DType::f32);
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
    const DeviceBuffer x(api, MemoryKind::device, 64);
    const auto all = api.join(kOne, rank, 2, {});
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
    const DeviceBuffer x(api, MemoryKind::device, 64);
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
    const DeviceBuffer y(api, MemoryKind::device, 64);
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
  const auto impatient = [&](double) {
    if (++asked == 5) fail(Fault::rank, "enough");
  };
  CHECK_THROWS_WITH_AS(api.join(api.new_communicator_id(), 0, 2, impatient), "enough", Error);

  const auto wrong = in_ranks(2, [](FakeApi& one, int rank) {
    const auto stream = one.make_stream();
    const auto event = one.make_event();
    const DeviceBuffer x(one, MemoryKind::device, 64);
    const auto all = one.join(kOne, rank, 2, {});
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

TEST_CASE("rows are summed where they belong, or go to all; halves are rounded once") {
  std::vector<float> floats_of[3];
  std::vector<uint16_t> halves[3];
  const auto wrong = in_ranks(3, [&](FakeApi& api, int rank) {
    const auto stream = api.make_stream();
    const DeviceBuffer x(api, MemoryKind::device, 256), pinned(api, MemoryKind::pinned, 256);
    const auto all = api.join(kOne, rank, 3, {});
    for (int i = 0; i < 6; ++i) floats(pinned)[i] = static_cast<float>(10 * rank + i);
    stream->copy(x.data(), pinned.data(), 24);
    all->reduce_scatter(*stream, x.data(), 2, DType::f32);
    stream->synchronise();
    floats_of[rank].assign(floats(x), floats(x) + 6);
    all->all_gather(*stream, x.data(), 2, DType::f32);
    stream->synchronise();
    for (int i = 0; i < 6; ++i) floats_of[rank].push_back(floats(x)[i]);
    auto* const bits = reinterpret_cast<uint16_t*>(x.data());
    for (int i = 0; i < 3; ++i)
      bits[i] = to_f16(i == 2 ? 40000 : 1 + 0.001F * static_cast<float>(rank));
    all->all_reduce(*stream, x.data(), 3, DType::f16);
    stream->synchronise();
    halves[rank].assign(bits, bits + 3);
    all->finish();
  });
  CHECK(wrong == std::vector<std::string>(3));
  const float sum[] = {30, 33, 36, 39, 42, 45};
  for (int r = 0; r < 3; ++r) {
    for (int i = 0; i < 6; ++i) {
      const bool own = i / 2 == r;
      CHECK(floats_of[r][static_cast<size_t>(i)] ==
            (own ? sum[i] : static_cast<float>(10 * r + i)));
      CHECK(floats_of[r][static_cast<size_t>(6 + i)] == sum[i]);
    }
    const float exact = from_f16(to_f16(1)) + from_f16(to_f16(1.001F)) + from_f16(to_f16(1.002F));
    CHECK(halves[r] == std::vector<uint16_t>{to_f16(exact), to_f16(exact), to_f16(INFINITY)});
  }
}

TEST_CASE("what a rank sends another one receives, and no third") {
  std::vector<float> got(2);
  const auto wrong = in_ranks(3, [&](FakeApi& api, int rank) {
    const auto stream = api.make_stream();
    const DeviceBuffer x(api, MemoryKind::device, 64);
    const auto all = api.join(kOne, rank, 3, {});
    if (rank == 0)
      for (const int to : {2, 1}) {
        launch(*stream, Fill<float>{floats(x), static_cast<float>(to)}, 16);
        all->send(*stream, x.data(), 64, to);
      }
    else
      all->receive(*stream, x.data(), 64, 0);
    stream->synchronise();
    if (rank > 0) got[static_cast<size_t>(rank - 1)] = floats(x)[15];
    all->finish();
  });
  CHECK(wrong == std::vector<std::string>(3));
  CHECK(got == std::vector<float>{1, 2});
  std::atomic<bool> told = false;
  const auto different = in_ranks(2, [&](FakeApi& api, int rank) {
    const auto stream = api.make_stream();
    const DeviceBuffer x(api, MemoryKind::device, 64);
    const auto all = api.join(kOne, rank, 2, {});
    rank == 0 ? all->send(*stream, x.data(), 64, 1) : all->receive(*stream, x.data(), 32, 0);
    if (rank == 1) {
      CHECK_THROWS_WITH_AS(stream->synchronise(),
                           "fake GPU: rank 0 sends 64 bytes, but rank 1 receives 32", Error);
      told = true;
    }
    while (!told) std::this_thread::yield();
    all->abort();
  });
  CHECK(different == std::vector<std::string>(2));
}

TEST_CASE("calls of a group are enqueued at its end, and nothing else with them") {
  const auto wrong = in_ranks(2, [&](FakeApi& api, int rank) {
    const auto stream = api.make_stream();
    const auto event = api.make_event();
    const DeviceBuffer x(api, MemoryKind::device, 128);
    const auto all = api.join(kOne, rank, 2, {});
    launch(*stream, Fill<float>{floats(x), static_cast<float>(rank)}, 32);
    {
      CallGroup group(*all);
      for (const int half : {0, 16}) all->all_reduce(*stream, floats(x) + half, 16, DType::f32);
      CHECK_THROWS_AS(stream->record(*event), Error);
      CHECK_THROWS_AS(stream->wait(*event), Error);
      CHECK_THROWS_AS(stream->fill(x.data(), 0, 4), Error);
      CHECK_THROWS_AS(all->begin_group(), Error);
      group.end();
    }
    stream->synchronise();
    CHECK(floats(x)[0] == 1);
    CHECK(floats(x)[31] == 1);
    { const CallGroup cancelled(*all); }
    CHECK_NOTHROW(stream->record(*event));
    all->finish();
  });
  CHECK(wrong == std::vector<std::string>(2));
}

TEST_CASE("what is sent and received in a graph is sent and received at each launch") {
  std::vector<float> got;
  const auto wrong = in_ranks(2, [&](FakeApi& api, int rank) {
    const auto stream = api.make_stream(), calls = api.make_stream();
    const auto there = api.make_event(), back = api.make_event();
    const DeviceBuffer x(api, MemoryKind::device, 64);
    const auto all = api.join(kOne, rank, 2, {});
    stream->fill(x.data(), 0, 64);
    launch(*stream, AddTo{floats(x), floats(x)}, 16);
    for (const bool sends : {rank == 0, rank == 1})
      sends ? all->send(*stream, x.data(), 64, 1 - rank)
            : all->receive(*stream, x.data(), 64, 1 - rank);
    stream->begin_capture();
    if (rank == 0) launch(*stream, AddTo{floats(x), floats(x)}, 16);
    stream->record(*there);
    calls->wait(*there);
    for (const bool sends : {rank == 0, rank == 1})  // there and back
      sends ? all->send(*calls, x.data(), 64, 1 - rank)
            : all->receive(*calls, x.data(), 64, 1 - rank);
    calls->record(*back);
    stream->wait(*back);
    const auto graph = stream->end_capture();
    launch(*stream, Fill<float>{floats(x), rank == 0 ? 1.0F : 7.0F}, 16);
    for (int i = 0; i < 3; ++i) {
      stream->launch(*graph);
      stream->synchronise();
      if (rank == 1) got.push_back(floats(x)[15]);
    }
    // The graph's calls are those of the stream that it was launched on.
    stream->launch(*graph);
    const std::string complaint = fmt::format(
        "fake GPU: s1 calls 'send 64 bytes to {}' beside 'graph of {} nodes' of s0, "
        "and no event stands between them",
        1 - rank, graph->nodes());
    CHECK_THROWS_WITH_AS(all->send(*calls, x.data(), 64, 1 - rank), complaint.c_str(), Error);
    stream->synchronise();
    CHECK(api.leaks().find("given up") == std::string::npos);
    all->abort();  // too early
    CHECK(api.leaks().find("graphs or captures with calls of a communicator that was given up") !=
          std::string::npos);
  });
  CHECK(wrong == std::vector<std::string>(2));
  CHECK(got == std::vector<float>{2, 4, 8});
}

TEST_CASE("a communicator is given up once its GPU has done all, so one behind another with it") {
  const auto wrong = in_ranks(2, [](FakeApi& api, int rank) {
    const auto stream = api.make_stream();
    const DeviceBuffer x(api, MemoryKind::device, 64);
    const auto one = api.join(kOne, rank, 2, {});
    const auto other = api.join(kOther, rank, 2, {});
    if (rank == 1) return;  // it never calls
    one->all_reduce(*stream, x.data(), 16, DType::f32);
    other->all_reduce(*stream, x.data(), 16, DType::f32);
    api.abort(std::array<Communicator*, 3>{nullptr, other.get(), one.get()});
    CHECK(api.leaks().find("never") == std::string::npos);
  });
  CHECK(wrong == std::vector<std::string>(2));
}

TEST_CASE("a communicator that is given up alone waits for another one's call") {
  const auto wrong = in_ranks(
      2,
      [](FakeApi& api, int rank) {
        const auto stream = api.make_stream();
        const DeviceBuffer x(api, MemoryKind::device, 64);
        const auto one = api.join(kOne, rank, 2, {});
        const auto other = api.join(kOther, rank, 2, {});
        if (rank == 1) return;
        one->all_reduce(*stream, x.data(), 16, DType::f32);
        other->all_reduce(*stream, x.data(), 16, DType::f32);
        other->abort();
        CHECK(api.leaks().find("work that would never have ended") != std::string::npos);
      },
      0.05);
  CHECK(wrong == std::vector<std::string>(2));
}

TEST_CASE("a communicator is not given up while a capture has its calls") {
  const auto wrong = in_ranks(1, [](FakeApi& api, int rank) {
    const auto stream = api.make_stream();
    const DeviceBuffer x(api, MemoryKind::device, 64);
    for (const bool cancels : {true, false}) {
      const auto all = api.join(api.new_communicator_id(), rank, 1, {});
      all->all_reduce(*stream, x.data(), 16, DType::f32);
      stream->synchronise();
      stream->begin_capture();
      all->all_reduce(*stream, x.data(), 16, DType::f32);
      if (cancels) stream->cancel_capture();
      all->abort();
      CHECK((api.leaks().find("given up") == std::string::npos) == cancels);
    }
    stream->cancel_capture();
  });
  CHECK(wrong[0].empty());
}

TEST_CASE("calls that GPUs wait for each other by are one behind the other, whatever the stream") {
  const auto wrong = in_ranks(1, [](FakeApi& api, int rank) {
    const auto one = api.make_stream(), other = api.make_stream();
    const auto event = api.make_event();
    const DeviceBuffer x(api, MemoryKind::device, 64), y(api, MemoryKind::device, 64);
    const auto all = api.join(api.new_communicator_id(), rank, 1, {});
    const auto more = api.join(api.new_communicator_id(), rank, 1, {});
    one->fill(x.data(), 0, 64);
    other->fill(y.data(), 0, 64);
    all->all_reduce(*one, x.data(), 16, DType::f32);
    CHECK_THROWS_WITH_AS(more->all_reduce(*other, y.data(), 16, DType::f32),
                         "fake GPU: s1 calls 'all_reduce 16 x f32' beside 'all_reduce 16 x f32' of "
                         "s0, and no event stands between them",
                         Error);
    one->record(*event);
    other->wait(*event);
    CHECK_NOTHROW(more->all_reduce(*other, y.data(), 16, DType::f32));
  });
  CHECK(wrong[0].empty());
}

TEST_CASE("a GPU goes on by itself while its host waits for something else") {
  std::atomic<bool> received = false;
  const auto wrong = in_ranks(2, [&](FakeApi& api, int rank) {
    const auto stream = api.make_stream();
    const DeviceBuffer x(api, MemoryKind::device, 64);
    const auto all = api.join(kOne, rank, 2, {});
    if (rank == 0) {
      stream->fill(x.data(), 0, 64);
      all->send(*stream, x.data(), 64, 1);
      while (!received) std::this_thread::yield();
    } else {
      all->receive(*stream, x.data(), 64, 0);
      stream->synchronise();
      received = true;
    }
  });
  CHECK(wrong == std::vector<std::string>(2));
}

TEST_CASE("another GPU's memory is used once its host has waited for what it does there") {
  FakeApi one({.index = 0}), other({.index = 1});
  const auto here = one.make_stream(), there = other.make_stream();
  const DeviceBuffer x(one, MemoryKind::device, 64), y(other, MemoryKind::device, 64);
  launch(*here, Fill<float>{floats(x), 3}, 16);
  CHECK_THROWS_WITH_AS(
      there->copy(y.data(), x.data(), 64),
      "fake GPU: s0 reads in 'copy 64 bytes, device to device' what s0 of another "
      "GPU writes in 'Fill<float> x 16', and no event or waiting host stands between "
      "them",
      Error);
  here->synchronise();
  there->copy(y.data(), x.data(), 64);
  CHECK_THROWS_AS(here->fill(x.data(), 0, 64), Error);
  there->synchronise();
  CHECK(floats(y)[15] == 3);
  CHECK_NOTHROW(here->fill(x.data(), 0, 64));
}

TEST_CASE("another GPU's memory is used behind an event of that GPU, without its host") {
  FakeApi one({.index = 0}), other({.index = 1}), deaf({.deaf_wait = 0, .index = 2});
  const auto here = one.make_stream(), there = other.make_stream(), third = deaf.make_stream();
  const auto made = one.make_event(), read = other.make_event();
  const DeviceBuffer x(one, MemoryKind::device, 64), y(other, MemoryKind::device, 64);
  launch(*here, Fill<float>{floats(x), 3}, 16);
  here->record(*made);
  there->wait(*made);
  there->copy(y.data(), x.data(), 64);
  there->record(*read);
  // What it was read for has to be waited for, too, before it changes.
  CHECK_THROWS_AS(here->fill(x.data(), 0, 64), Error);
  here->wait(*read);
  here->fill(x.data(), 0, 64);
  third->wait(*read);
  CHECK_THROWS_AS(third->fill(y.data(), 0, 64), Error);
  CHECK_THROWS_AS(here->record(*read), Error);
  there->synchronise();  // does what the other one was told
  CHECK(floats(y)[15] == 3);
  here->synchronise();
  CHECK(floats(x)[15] == 0);
  there->begin_capture();
  CHECK_THROWS_AS(there->wait(*made), Error);
}

}  // namespace
}  // namespace dpt::cuda
