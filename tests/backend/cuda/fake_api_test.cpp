// The fake GPU finds what it is there to find: each rule is broken once.
#include "backend/cuda/fake_api.h"

#include <array>
#include <cstring>

#include <doctest/doctest.h>

#include "backend/cuda/interface/launch.h"

namespace dpt::cuda {
namespace {

template <class F>
std::string complaint(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Two streams and a buffer.
struct Bench {
  FakeApi api;
  std::unique_ptr<Stream> a = api.make_stream(), b = api.make_stream();
  std::unique_ptr<Event> event = api.make_event();
  DeviceBuffer x{api, MemoryKind::device, 1024}, y{api, MemoryKind::device, 1024};
  DeviceBuffer host{api, MemoryKind::pinned, 1024};
  float* floats(const DeviceBuffer& m) const { return reinterpret_cast<float*>(m.data()); }
  void fill(Stream& s, const DeviceBuffer& m, float value) const {
    launch(s, Fill<float>{floats(m), value}, 256);
  }
};

TEST_CASE("a stream that uses what another one wrote must have waited for it") {
  Bench t;
  t.fill(*t.a, t.x, 1);
  CHECK(complaint([&] { t.b->copy(t.y.data(), t.x.data(), 4); }) ==
        "fake GPU: s1 reads in 'copy 4 bytes, device to device' what s0 writes in 'Fill<float> x "
        "256', and no event stands between them");
  CHECK(complaint([&] {
          t.b->fill(t.x.data() + 1020, 0, 4);
        }).starts_with("fake GPU: s1 overwrites in 'fill 4 bytes' what s0 writes in"));
  CHECK_NOTHROW(t.b->fill(t.y.data(), 0, 4));
}

TEST_CASE("memory that was allocated, and a communicator's, is not free") {
  FakeApi api({.free_memory = 10000, .communicator_memory = 4000});
  CHECK(api.free_memory() == 10000);
  {
    const DeviceBuffer x(api, MemoryKind::device, 1000), pinned(api, MemoryKind::pinned, 500);
    CHECK(api.free_memory() == 9000);
  }
  CHECK(api.free_memory() == 10000);
  const auto id = api.new_communicator_id();
  const auto all = api.join(id, 0, 1, {});
  CHECK(api.free_memory() == 6000);
  const DeviceBuffer most(api, MemoryKind::device, 3000);
  CHECK_THROWS_AS(api.join(api.new_communicator_id(), 0, 1, {}), Error);
}

TEST_CASE("what another stream still reads is not overwritten without waiting for it") {
  Bench t;
  t.a->copy(t.y.data(), t.x.data(), 1024);
  CHECK(complaint([&] {
          t.fill(*t.b, t.x, 1);
        }).starts_with("fake GPU: s1 overwrites in 'Fill<float> x 256' what s0 reads in"));
  CHECK_NOTHROW(t.b->copy(t.host.data(), t.x.data(), 1024));  // two may read
}

TEST_CASE("an event, or the host's waiting, orders two streams") {
  Bench t;
  t.fill(*t.a, t.x, 1);
  t.a->record(*t.event);
  t.b->wait(*t.event);
  CHECK_NOTHROW(t.b->copy(t.y.data(), t.x.data(), 1024));
  t.fill(*t.a, t.host, 2);
  t.a->synchronise();
  CHECK_NOTHROW(t.fill(*t.b, t.host, 3));
  // The event knows nothing of what came after it.
  const DeviceBuffer z(t.api, MemoryKind::device, 1024);
  t.fill(*t.a, z, 4);
  t.b->wait(*t.event);
  CHECK_FALSE(complaint([&] { t.b->copy(t.y.data(), z.data(), 4); }).empty());
}

TEST_CASE("work is done as late as allowed, so that the host's own haste shows") {
  Bench t;
  t.floats(t.host)[0] = 5;
  t.a->copy(t.x.data(), t.host.data(), 4);
  t.floats(t.host)[0] = 6;  // too early
  t.a->copy(t.y.data(), t.x.data(), 4);
  CHECK(t.floats(t.y)[0] != 5);
  t.a->synchronise();
  CHECK(t.floats(t.y)[0] == 6);
}

TEST_CASE("memory is there, long enough, and not freed") {
  Bench t;
  std::byte* freed = nullptr;
  {
    const DeviceBuffer gone(t.api, MemoryKind::device, 64);
    freed = gone.data();
  }
  float own = 0;
  CHECK(complaint([&] { t.a->fill(freed, 0, 4); }) ==
        "fake GPU: fill 4 bytes uses memory that was freed");
  CHECK(complaint([&] { t.a->fill(t.x.data() + 1020, 0, 8); }) ==
        "fake GPU: fill 8 bytes goes beyond the end of its memory");
  CHECK(complaint([&] { t.a->copy(t.x.data(), &own, 4); }) ==
        "fake GPU: copy uses memory that was never allocated");
}

TEST_CASE("a capture takes no allocation, no waiting host and no unjoined stream") {
  Bench t;
  t.fill(*t.a, t.x, 1);
  t.a->begin_capture();
  t.fill(*t.a, t.x, 1);
  CHECK(complaint([&] { const DeviceBuffer m(t.api, MemoryKind::device, 4); }) ==
        "fake GPU: allocate while a stream captures");
  CHECK(complaint([&] { t.a->synchronise(); }) == "fake GPU: synchronise while a stream captures");
  t.a->record(*t.event);
  t.b->wait(*t.event);
  t.b->copy(t.y.data(), t.x.data(), 4);
  CHECK(complaint([&] { t.a->end_capture(); }) ==
        "fake GPU: the capture of s0 ends before it has waited for s1");
}

TEST_CASE("events stay on their side of a capture, and what is told meanwhile is part of it") {
  Bench t;
  const auto before = t.api.make_event(), never = t.api.make_event();
  t.fill(*t.a, t.x, 1);
  t.a->record(*before);
  t.a->begin_capture();
  CHECK(complaint([&] { t.a->wait(*before); }) ==
        "fake GPU: s0 waits while it captures for an event of something else");
  CHECK(complaint([&] { t.a->wait(*never); }) ==
        "fake GPU: s0 waits while it captures for an event that was never recorded");
  CHECK(complaint([&] { t.fill(*t.b, t.y, 1); }) ==
        "fake GPU: s1 is told 'Fill<float> x 256' beside a capture that it has not joined");
  t.a->record(*t.event);
  t.b->wait(*t.event);
  CHECK_NOTHROW(t.fill(*t.b, t.y, 1));
  t.b->record(*t.event);
  t.a->wait(*t.event);
  const auto graph = t.a->end_capture();
  CHECK(graph->nodes() == 1);
  CHECK(complaint([&] { t.b->wait(*t.event); }) ==
        "fake GPU: s1 waits for an event of a capture that has ended");
  CHECK(complaint([&] { t.event->passed(); }) ==
        "fake GPU: the host asks for an event that was recorded in a capture");
  CHECK(complaint([&] { t.event->wait(); }) ==
        "fake GPU: the host waits for an event that was recorded in a capture");
  t.b->record(*t.event);
  CHECK_NOTHROW(t.event->wait());
}

TEST_CASE("a captured graph does again what was recorded, and is checked as one") {
  Bench t;
  t.a->begin_capture();
  t.a->copy(t.y.data(), t.x.data(), 1024);
  const auto graph = t.a->end_capture();
  CHECK(graph->nodes() == 1);
  for (const float value : {1.0F, 2.0F}) {
    t.fill(*t.a, t.x, value);
    t.a->launch(*graph);
    t.a->synchronise();
    CHECK(t.floats(t.y)[255] == value);
  }
  t.fill(*t.b, t.x, 3);
  CHECK(complaint([&] { t.a->launch(*graph); }).starts_with("fake GPU: s0 reads in 'graph of"));
}

TEST_CASE("what is called for the first time in a capture ends it") {
  Bench t;
  const auto work = t.api.prepare(Matmul{.m = 2, .n = 2, .k = 2});
  const DeviceBuffer workspace(t.api, MemoryKind::device, work->workspace_bytes());
  const auto multiply = [&] {
    t.a->run(*work, std::array{t.x.data(), t.x.data() + 64, t.y.data()}, workspace.data());
  };
  t.a->begin_capture();
  CHECK(complaint([&] { t.fill(*t.a, t.x, 1); }) ==
        "fake GPU: 'Fill<float> x 256' is called for the first time while a stream captures, which "
        "ends the capture (error 900)");
  CHECK(complaint([&] { t.a->end_capture(); }) ==
        "fake GPU: the capture of s0 was ended by an error before");
  t.a->begin_capture();
  CHECK_NOTHROW(t.fill(*t.a, t.x, 1));  // now it is there
  CHECK(complaint(multiply).find("is called for the first time") != std::string::npos);
  CHECK_THROWS_AS(t.a->end_capture(), Error);
  multiply();
  t.a->begin_capture();
  CHECK_NOTHROW(multiply());
  CHECK(t.a->end_capture()->nodes() == 1);
}

TEST_CASE("strict: a kernel that uses other memory than it says is caught") {
  FakeApi api({.strict = true});
  const auto stream = api.make_stream();
  const DeviceBuffer x(api, MemoryKind::device, 64), y(api, MemoryKind::device, 64);
  auto* from = reinterpret_cast<uint32_t*>(x.data());
  auto* to = reinterpret_cast<uint32_t*>(y.data());
  from[0] = 5;
  Box box{.rank = 1, .extent = {1}, .step = {1}, .other_extent = {1}, .other_step = {1}};
  box.other_elements = 1;
  launch(*stream, Give<uint32_t>{box, from, to}, 1);
  stream->synchronise();
  CHECK(to[0] == 5);
  box.other_elements = 0;  // of which it says how much it uses
  launch(*stream, Take<uint32_t>{box, from, to, 0}, 1);
  stream->synchronise();
  CHECK(to[0] == 0xa7a7a7a7);
  launch(*stream, Give<uint32_t>{box, from, to}, 1);
  CHECK(complaint([&] { stream->synchronise(); }).ends_with("writes what it does not say"));
}

TEST_CASE("what is still there is named, and nothing when all is gone") {
  FakeApi api;
  {
    const auto stream = api.make_stream();
    const DeviceBuffer m(api, MemoryKind::device, 10);
    CHECK(api.leaks() == "10 bytes 1 streams ");
  }
  CHECK(api.leaks() == "");
}

TEST_CASE("the n-th call fails, memory as memory") {
  FakeApi api({.fail_call = 1});
  const auto stream = api.make_stream();
  try {
    const DeviceBuffer m(api, MemoryKind::device, 4);
    FAIL("it was there");
  } catch (const Error& e) {
    CHECK(e.fault() == Fault::memory);
    CHECK(std::string(e.what()) == "call 1 of the fake GPU, allocate, was told to fail");
  }
}

TEST_CASE("calls are listed in their order") {
  Bench t;
  t.api.take_calls();
  t.fill(*t.a, t.x, 1);
  t.a->record(*t.event);
  t.b->wait(*t.event);
  t.b->copy(t.host.data(), t.x.data(), 8);
  CHECK(t.api.take_calls() == std::vector<std::string>{"s0 Fill<float> x 256", "s0 record",
                                                       "s1 wait",
                                                       "s1 copy 8 bytes, device to pinned"});
}

}  // namespace
}  // namespace dpt::cuda
