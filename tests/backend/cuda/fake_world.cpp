#include "backend/cuda/fake_world.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>

#include "backend/cuda/fake_stream.h"
#include "base/fail.h"

namespace dpt::cuda {
namespace {

size_t bytes_of(const FakeCall& c) { return c.count * size_of(c.dtype); }

template <class T>
void sum(std::byte* to, const std::vector<const std::byte*>& from, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    double total = 0;
    for (const std::byte* rank : from) {
      T x;
      std::memcpy(&x, rank + i * sizeof x, sizeof x);
      total += static_cast<double>(x);
    }
    const T out = static_cast<T>(total);
    std::memcpy(to + i * sizeof out, &out, sizeof out);
  }
}

std::string text_of(const FakeCall& c) {
  return c.kind == FakeCall::Kind::all_reduce
             ? fmt::format("all_reduce {} x {}", c.count, name_of(c.dtype))
             : fmt::format("broadcast {} bytes of {}", c.count, c.root);
}

}  // namespace

FakeWorld::FakeWorld() {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require(memory != MAP_FAILED, "memory that processes share");
  shared_ = static_cast<Shared*>(memory);  // zeros are a fresh one
}
FakeWorld::~FakeWorld() { munmap(shared_, sizeof(Shared)); }

struct FakeCommunicator::State {
  FakeWorld::Shared& shared;
  int rank, ranks;
  uint64_t done = 0;  // calls
  bool brought = false;

  FakeWorld::Seat& own() const { return shared.seat[rank]; }
  // Whether all have come to this call.
  bool arrive(const FakeCall& call, const std::byte* data) {
    if (!brought) {
      own().call[done % 2] = call;
      std::memcpy(own().data[done % 2], data, bytes_of(call));
      own().calls.store(done + 1, std::memory_order_release);
      brought = true;
    }
    for (int r = 0; r < ranks; ++r)
      if (shared.seat[r].calls.load(std::memory_order_acquire) <= done) return false;
    return true;
  }
  void take(const FakeCall& call, std::byte* data) {
    std::vector<const std::byte*> all;
    for (int r = 0; r < ranks; ++r) {
      const FakeCall& theirs = shared.seat[r].call[done % 2];
      if (theirs != call)
        fail(Fault::failed, "fake GPU: call {} of rank {} is {}, but that of rank {} is {}", done,
             rank, text_of(call), r, text_of(theirs));
      all.push_back(shared.seat[r].data[done % 2]);
    }
    if (call.kind == FakeCall::Kind::broadcast)
      std::memcpy(data, all[static_cast<size_t>(call.root)], call.count);
    else if (call.dtype == DType::f64)
      sum<double>(data, all, call.count);
    else
      sum<float>(data, all, call.count);
    ++done;
    brought = false;
  }
};

FakeCommunicator::FakeCommunicator(FakeWorld& world, int rank, int ranks,
                                   const WhileWaiting& waiting)
    : world_(world),
      rank_(rank),
      ranks_(ranks),
      waiting_(waiting),
      state_(std::make_shared<State>(State{*world.shared_, rank, ranks})) {
  require(ranks <= FakeWorld::kMostRanks, "the fake world is large enough");
  const auto joined = [&](int r) { return world.shared_->seat[r].joined.load(); };
  if (joined(rank)) fail(Fault::rank, "fake GPU: rank {} joins twice", rank);
  world.shared_->seat[rank].joined = true;
  for (int r = 0; r < ranks; ++r)
    while (!joined(r)) {
      if (waiting) waiting();
      std::this_thread::yield();
    }
}

void FakeCommunicator::enqueue(Stream& stream, void* data, const FakeCall& call) {
  require(bytes_of(call) <= FakeWorld::kMostBytes, "the fake world is large enough");
  if (*aborted_) fail(Fault::rank, "fake GPU: this communicator was given up");
  auto* const at = static_cast<std::byte*>(data);
  const auto state = state_;
  const auto aborted = aborted_;
  static_cast<FakeStream&>(stream).enqueue(
      text_of(call), {{at, bytes_of(call), true}},
      {.run =
           [=] {
             if (!*aborted) state->take(call, at);
           },
       .ready = [=] { return *aborted || state->arrive(call, at); }});
}

void FakeCommunicator::all_reduce(Stream& stream, void* data, size_t count, DType dtype) {
  require(dtype == DType::f32 || dtype == DType::f64, "the fake GPU sums f32 and f64");
  enqueue(stream, data, {.kind = FakeCall::Kind::all_reduce, .dtype = dtype, .count = count});
}
void FakeCommunicator::broadcast(Stream& stream, void* data, size_t bytes, int root) {
  enqueue(stream, data,
          {.kind = FakeCall::Kind::broadcast, .dtype = DType::u8, .root = root, .count = bytes});
}
void FakeCommunicator::check() {
  if (*aborted_) fail(Fault::rank, "fake GPU: this communicator was given up");
}
void FakeCommunicator::finish() {
  check();
  if (state_->brought) fail(Fault::failed, "fake GPU: finish() before all calls are done");
  world_.shared_->seat[rank_].finished = true;
  for (int r = 0; r < ranks_; ++r)
    while (!world_.shared_->seat[r].finished) {
      if (waiting_) waiting_();
      std::this_thread::yield();
    }
}

}  // namespace dpt::cuda
