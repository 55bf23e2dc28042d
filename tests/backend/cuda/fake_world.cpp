#include "backend/cuda/fake_world.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/cuda/fake_stream.h"
#include "base/fail.h"
#include "base/half.h"

namespace dpt::cuda {
namespace {

using Kind = FakeCall::Kind;

// What a rank has of it, and what it brings to the others: a part of that.
size_t bytes_of(const FakeCall& c, int ranks) {
  const bool rows = c.kind == Kind::reduce_scatter || c.kind == Kind::all_gather;
  return c.count * size_of(c.dtype) * (rows ? static_cast<size_t>(ranks) : 1);
}
size_t brought_by(const FakeCall& c, int ranks) {
  return c.kind == Kind::all_gather ? c.count * size_of(c.dtype) : bytes_of(c, ranks);
}

double load(DType t, const std::byte* from) {
  const auto as = [from]<class T>(T x) {
    std::memcpy(&x, from, sizeof x);
    return x;
  };
  if (t == DType::f64) return as(double{});
  if (t == DType::f32) return static_cast<double>(as(float{}));
  const uint16_t bits = as(uint16_t{});
  return static_cast<double>(t == DType::bf16 ? from_bf16(bits) : from_f16(bits));
}
void store(DType t, std::byte* to, double x) {
  const auto put = [to](auto y) { std::memcpy(to, &y, sizeof y); };
  const auto f = static_cast<float>(x);
  if (t == DType::f64) return put(x);
  if (t == DType::f32) return put(f);
  put(t == DType::bf16 ? to_bf16(f) : to_f16(f));
}

bool is_off(const char* variable) {
  const char* const value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return value != nullptr && std::string_view(value) == "0";
}

// `count` numbers of each rank. A switch (NVLS) sums in f32 in whatever order they come.
void sum(DType t, std::byte* to, std::vector<const std::byte*> from, size_t count, uint32_t order) {
  const bool in_switch = !is_off("NCCL_NVLS_ENABLE") && t != DType::f64;
  if (in_switch) std::rotate(from.begin(), from.begin() + order % from.size(), from.end());
  for (size_t i = 0; i < count * size_of(t); i += size_of(t)) {
    double total = 0;
    for (const std::byte* rank : from) {
      total += load(t, rank + i);
      if (in_switch) total = static_cast<double>(static_cast<float>(total));
    }
    store(t, to + i, total);
  }
}

std::string text_of(const FakeCall& c) {
  constexpr std::string_view kNames[] = {"all_reduce", "reduce_scatter", "all_gather"};
  return c.kind == Kind::broadcast ? fmt::format("broadcast {} bytes of {}", c.count, c.root)
                                   : fmt::format("{} {} x {}", kNames[static_cast<int>(c.kind)],
                                                 c.count, name_of(c.dtype));
}

// Also one that nobody has waited for yet.
bool has_ended(pid_t process) {
  if (process == getpid()) return false;
  std::ifstream in(fmt::format("/proc/{}/stat", process));
  std::string line;
  if (!std::getline(in, line)) return true;
  const char state = line[line.rfind(')') + 2];
  return state == 'Z' || state == 'X';
}

}  // namespace

FakeWorld::FakeWorld() : file_(memfd_create("fake GPUs", MFD_CLOEXEC)) {
  require(file_ >= 0 && ftruncate(file_, sizeof(Shared)) == 0, "memory that processes share");
  map();
}
FakeWorld::FakeWorld(const std::string& name) : file_(open(name.c_str(), O_RDWR | O_CLOEXEC)) {
  require(file_ >= 0, "the world that a communicator's id names");
  map();
}
FakeWorld::~FakeWorld() {
  munmap(shared_, sizeof(Shared));
  close(file_);
}
void FakeWorld::map() {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  require(memory != MAP_FAILED, "memory that processes share");
  shared_ = static_cast<Shared*>(memory);  // zeros are a fresh one
}
std::string FakeWorld::name() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }

struct FakeCommunicator::State {
  FakeWorld::Group& shared;
  int rank, ranks;
  uint64_t done = 0;  // calls
  bool brought = false;

  FakeWorld::Seat& own() const { return shared.seat[rank]; }
  size_t own_row(const FakeCall& call) const {
    return static_cast<size_t>(rank) * call.count * size_of(call.dtype);
  }
  // Whether all have come to this call.
  bool arrive(const FakeCall& call, const std::byte* data) {
    if (!brought) {
      own().call[done % 2] = call;
      own().order[done % 2] = std::random_device()();
      const size_t bytes = brought_by(call, ranks);
      const bool row = call.kind == Kind::all_gather;
      std::memcpy(own().data[done % 2], data + (row ? own_row(call) : 0), bytes);
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
    const size_t row = own_row(call), row_bytes = call.count * size_of(call.dtype);
    const uint32_t order = shared.seat[0].order[done % 2];
    switch (call.kind) {
      case Kind::broadcast:
        std::memcpy(data, all[static_cast<size_t>(call.root)], call.count);
        break;
      case Kind::all_gather:
        for (size_t r = 0; r < all.size(); ++r)
          std::memcpy(data + r * row_bytes, all[r], row_bytes);
        break;
      case Kind::reduce_scatter:
        for (const std::byte*& rank_data : all) rank_data += row;
        sum(call.dtype, data + row, all, call.count, order);
        break;
      case Kind::all_reduce:
        sum(call.dtype, data, all, call.count, order);
        break;
    }
    ++done;
    brought = false;
  }
};

FakeCommunicator::FakeCommunicator(FakeApi& api, FakeWorld& world, int group, int rank, int ranks,
                                   const WhileWaiting& waiting)
    : api_(api),
      group_(world.shared_->group[group]),
      rank_(rank),
      ranks_(ranks),
      waiting_(waiting),
      state_(std::make_shared<State>(State{group_, rank, ranks})) {
  require(ranks <= FakeWorld::kMostRanks, "the fake world is large enough");
  const auto joined = [&](int r) { return group_.seat[r].joined.load(); };
  if (joined(rank)) fail(Fault::rank, "fake GPU: rank {} joins twice", rank);
  group_.seat[rank].process = getpid();
  group_.seat[rank].joined = true;
  for (int r = 0; r < ranks; ++r) settle([&] { return joined(r); });
}

void FakeCommunicator::register_buffers() {
  if (is_off("NCCL_GRAPH_REGISTER")) return;
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> patience(api_.settings_.patience_s);
  const uint64_t mine = ++group_.seat[rank_].captured;
  for (int r = 0; r < ranks_; ++r)
    while (group_.seat[r].captured < mine) {
      if (std::chrono::steady_clock::now() - begin > patience)
        violation("rank {} captures a call that rank {} does not", rank_, r);
      std::this_thread::yield();
    }
}

void FakeCommunicator::settle(const std::function<bool()>& done) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  do {
    if (waiting_) waiting_(std::chrono::duration<double>(Clock::now() - begin).count());
    std::this_thread::yield();
  } while (!done());
}

void FakeCommunicator::enqueue(Stream& stream, void* data, const FakeCall& call) {
  const size_t bytes = bytes_of(call, ranks_), row = call.count * size_of(call.dtype);
  require(bytes <= FakeWorld::kMostBytes, "the fake world is large enough");
  auto* const at = static_cast<std::byte*>(data);
  const std::byte* const own = at + static_cast<size_t>(rank_) * row;
  const auto state = state_;
  std::vector<Touched> touched = {{at, bytes, true}};
  if (call.kind == Kind::reduce_scatter) touched = {{at, bytes, false}, {own, row, true}};
  if (call.kind == Kind::all_gather) touched.push_back({own, row, false});
  enqueue(
      stream, text_of(call), touched, [=] { return state->arrive(call, at); },
      [=] { state->take(call, at); });
}

void FakeCommunicator::enqueue(Stream& stream, const std::string& what,
                               const std::vector<Touched>& touched, std::function<bool()> ready,
                               std::function<void()> run) {
  if (*aborted_) fail(Fault::rank, "fake GPU: this communicator was given up");
  const auto aborted = aborted_;
  auto& s = static_cast<FakeStream&>(stream);
  // NCCL connects ranks when they first call something.
  const std::string kind = what.substr(0, what.find(' ')), peer = what.substr(what.rfind(' '));
  api_.load(fmt::format("communicator {} {}{}", static_cast<void*>(this), kind,
                        kind == "send" || kind == "receive" ? peer : ""),
            what, s.capture_.get());
  if (s.capture_ && kind != "send" && kind != "receive") register_buffers();
  s.enqueue_call(what, touched,
                 {.run =
                      [aborted, run] {
                        if (!*aborted) run();
                      },
                  .ready = [aborted, ready] { return *aborted || ready(); }});
  if (!api_.groups_) settle([] { return true; });
}

void FakeCommunicator::send(Stream& stream, const void* data, size_t bytes, int to) {
  require(bytes <= FakeWorld::kMostBytes, "the fake world is large enough");
  const auto* const at = static_cast<const std::byte*>(data);
  enqueue(
      stream, fmt::format("send {} bytes to {}", bytes, to), {{at, bytes, false}},
      [=, &own = group_.seat[rank_], brought = false]() mutable {
        if (!brought) {
          if (own.to.load(std::memory_order_acquire) != 0) return false;
          std::memcpy(own.sent, at, bytes);
          own.bytes = bytes;
          own.to.store(to + 1, std::memory_order_release);
          brought = true;
        }
        return own.to.load(std::memory_order_acquire) == 0;
      },
      [] {});
}

void FakeCommunicator::receive(Stream& stream, void* data, size_t bytes, int from) {
  auto* const at = static_cast<std::byte*>(data);
  enqueue(
      stream, fmt::format("receive {} bytes of {}", bytes, from), {{at, bytes, true}},
      [&theirs = group_.seat[from], own = rank_ + 1] {
        return theirs.to.load(std::memory_order_acquire) == own;
      },
      [=, &theirs = group_.seat[from], own = rank_] {
        if (theirs.bytes != bytes)
          fail(Fault::failed, "fake GPU: rank {} sends {} bytes, but rank {} receives {}", from,
               theirs.bytes, own, bytes);
        std::memcpy(at, theirs.sent, bytes);
        theirs.to.store(0, std::memory_order_release);
      });
}

void FakeCommunicator::sums(Stream& stream, void* data, Kind kind, size_t count, DType dtype) {
  require(dtype == DType::f32 || dtype == DType::f64 || is_half(dtype),
          "NCCL sums numbers with a fraction");
  enqueue(stream, data, {.kind = kind, .dtype = dtype, .count = count});
}
void FakeCommunicator::all_reduce(Stream& stream, void* data, size_t count, DType dtype) {
  sums(stream, data, Kind::all_reduce, count, dtype);
}
void FakeCommunicator::reduce_scatter(Stream& stream, void* data, size_t count, DType dtype) {
  sums(stream, data, Kind::reduce_scatter, count, dtype);
}
void FakeCommunicator::all_gather(Stream& stream, void* data, size_t count, DType dtype) {
  enqueue(stream, data, {.kind = Kind::all_gather, .dtype = dtype, .count = count});
}
void FakeCommunicator::broadcast(Stream& stream, void* data, size_t bytes, int root) {
  enqueue(stream, data,
          {.kind = Kind::broadcast, .dtype = DType::u8, .root = root, .count = bytes});
}
void FakeCommunicator::abort() noexcept {
  const std::array<Communicator*, 1> own = {this};
  api_.abort(own);
}
bool FakeCommunicator::end_calls() noexcept {
  if (finished_ || std::exchange(*aborted_, true)) return false;
  group_.seat[rank_].aborted = true;
  return true;
}
bool FakeCommunicator::others_end_calls() const noexcept {
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::duration<double> patience(api_.settings_.patience_s);
  for (int r = 0; r < ranks_; ++r)
    while (!group_.seat[r].aborted) {
      if (std::chrono::steady_clock::now() - begin > patience) return false;
      std::this_thread::yield();
    }
  return true;
}
// Done one after the other all the same, which is the order that waits the most.
void FakeCommunicator::begin_group() {
  api_.count_call("begin_group");
  if (std::exchange(api_.groups_, true)) violation("a group of calls begins within another one");
  api_.log("group");
}
void FakeCommunicator::end_group() {
  api_.groups_ = false;
  api_.log("end of the group");
  api_.count_call("end_group");
  settle([] { return true; });
}
void FakeCommunicator::cancel_group() noexcept { api_.groups_ = false; }
void FakeCommunicator::check() {
  if (*aborted_) fail(Fault::rank, "fake GPU: this communicator was given up");
  // Connections of a process that has ended are closed before anybody is told of its end.
  for (int r = 0; r < ranks_; ++r)
    if (has_ended(group_.seat[r].process))
      fail(Fault::rank, "fake GPU: the connection to rank {} broke", r);
}
void FakeCommunicator::finish() {
  check();
  if (state_->brought) fail(Fault::failed, "fake GPU: finish() before all calls are done");
  group_.seat[rank_].finished = true;
  for (int r = 0; r < ranks_; ++r) settle([&] { return group_.seat[r].finished.load(); });
  finished_ = true;
}

}  // namespace dpt::cuda
