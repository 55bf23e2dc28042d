// A GPU that is none: computes on the host and watches what it is told.
//
// What is enqueued is done as late as allowed, when somebody waits for it, so that memory that is
// used too early or filled again too early shows in the numbers. Each call is checked when it is
// made: memory must be there, and what one stream writes another one may use only where an event,
// or the host's waiting, stands between them (vector clocks: Fidge 1988, Mattern 1989). Several of
// one process may use each other's memory, behind an event of the other or once the other's host
// has waited for what it did there; who waits does what others were told before, so that threads
// never wait for each other's hosts. One that has joined others of other processes goes on by
// itself where its own host is silent for a while, since it may wait for something else than its
// GPU while those wait for that. Whatever is wrong throws Error{failed} that begins with "fake
// GPU".
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "backend/cuda/host_kernels.h"
#include "backend/cuda/interface/device_api.h"
#include "base/error.h"
#include "base/units.h"

namespace dpt::cuda {

class FakeStream;
class FakeWorld;

// What a stream is told to do. ready: whether it can be done, where others have to come; null: it
// can.
struct FakeItem {
  std::function<void()> run;
  std::function<bool()> ready = nullptr;
};

class FakeApi : public DeviceApi {
 public:
  struct Settings {
    ThreadOrder order = ThreadOrder::forward;  // of the threads of own kernels
    // Also checks that an own kernel uses no memory but what it says: all other is overwritten
    // while it runs. For small memories.
    bool strict = false;
    int64_t fail_call = -1;           // the number of the call that fails, from 0
    int64_t die_call = -1;            // the number of the call at which the process is killed
    int64_t stall_call = -1;          // the number of the call that takes two seconds
    int64_t hang_call = -1;           // the number of the call that never returns
    int64_t interrupt_call = -1;      // the number of the call at which somebody presses Ctrl-C
    int64_t deaf_wait = -1;           // the number of the stream's wait that is left out, from 0
    bool libraries = true;            // they have algorithms
    bool epilogues = true;            // with relu and sums, too
    std::vector<Epilogue> lacking{};  // but not with these
    bool busy = false;                // no event is passed until somebody waits for it
    size_t score_bytes = 0;           // that a gradient of attention needs for each score
    // cuDNN's plans are made by so many threads at a time; who comes alone waits for the others.
    int planners = 1;
    size_t free_memory = 4 * kGiB;   // before anything is allocated
    size_t communicator_memory = 0;  // that each one takes when it is joined
    double patience_s = 20;          // with what other ranks have to come for
    double abort_s = 0;              // that abort() takes
    bool mutual_aborts = false;      // abort() waits until all ranks have called it
    int index = 0;                   // of the GPU in its machine
    FakeWorld* world = nullptr;      // where its communicators meet; null: where their id says
  };
  FakeApi() : FakeApi(Settings{}) {}
  explicit FakeApi(const Settings& settings);
  ~FakeApi() override;

  const DeviceProperties& properties() const override { return properties_; }
  std::byte* allocate(MemoryKind kind, size_t bytes) override;
  void free(MemoryKind kind, std::byte* memory) noexcept override;
  size_t free_memory() override;
  std::unique_ptr<Stream> make_stream() override;
  std::unique_ptr<Stream> make_urgent_stream() override;
  std::unique_ptr<Event> make_event() override;
  std::unique_ptr<DeviceWork> prepare(const Matmul& matmul) override;
  std::unique_ptr<DeviceWork> prepare(const DnnConvolution& convolution) override;
  std::unique_ptr<DeviceWork> prepare(const DnnNorm& norm) override;
  std::unique_ptr<DeviceWork> prepare(const DnnPool& pool) override;
  std::unique_ptr<DeviceWork> prepare(const DnnAttention& attention) override;
  CommunicatorId new_communicator_id() override;
  using DeviceApi::join;
  std::unique_ptr<Communicator> join(const CommunicatorId& id, int rank, int ranks,
                                     const WhileWaiting& waiting, int most_blocks) override;
  void abort(std::span<Communicator* const> communicators) noexcept override;
  void reach(int index) override;
  void synchronise() override;

  // What was called since the last time, a line each; a graph's launch is one.
  std::vector<std::string> take_calls() { return std::exchange(calls_, {}); }
  int64_t calls() const { return call_count_; }
  int64_t waits() const { return wait_count_; }  // of streams
  int64_t allocations() const { return allocation_count_; }
  size_t most_pinned() const { return most_pinned_; }  // bytes at once
  int64_t plans() const { return plan_count_; }        // of cuDNN, that were asked for
  std::string leaks() const;  // what was made and is still there, or nothing

 private:
  friend class FakeStream;
  friend class FakeEvent;
  friend class FakeGraph;
  template <class Base>
  friend class FakeCounted;
  friend class FakeWork;
  friend class FakeCommunicator;

  // How many calls of each stream of each GPU are known.
  using Clock = std::map<std::pair<uint64_t, size_t>, uint64_t>;
  struct Access {
    uint64_t at;  // the stream's own time
    std::string what;
  };
  // (begin, end, GPU, stream, writes) -> the last one
  using Accesses = std::map<std::tuple<size_t, size_t, uint64_t, size_t, bool>, Access>;
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    size_t bytes;
    MemoryKind kind;
    bool freed = false;
    std::byte* data = nullptr;
    Accesses accesses{};
  };
  struct Call {
    size_t stream = 0;
    uint64_t at = 0;  // the stream's own time; 0: there was none
    std::string what;
  };
  struct Capture {
    std::map<const Block*, Accesses> accesses;
    std::vector<FakeItem> work;
    std::vector<Touched> touched;
    std::vector<FakeStream*> streams;
    Call last_call;  // of a communicator
    bool ended = false;
    bool invalid = false;  // something was loaded in it
  };

  void count_call(const std::string& what, Fault fault = Fault::device);
  void log(std::string what) { calls_.push_back(std::move(what)); }
  Block& block_of(const std::byte* p, size_t bytes, const std::string& what);
  void check(const FakeStream& stream, const Touched& t, const std::string& what);
  // A library loads code and takes memory when something is called for the first time, which ends a
  // capture. key: what is loaded, of an own kernel or a communicator.
  void load(const std::string& key, const std::string& what, Capture* capture);
  void look_for_algorithm(bool plain) const;
  template <class Description>
  std::unique_ptr<DeviceWork> plan(const std::string& what, const Description& d, bool plain);
  void meet_planners();
  void not_while_capturing(const std::string& what) const;
  void host_knows(const Clock& clock);
  Block* find_block(const std::byte* p);
  void run_strictly(const std::vector<Touched>& touched, const std::function<void()>& work,
                    const std::string& what);
  static void merge(Clock& into, const Clock& from);
  static uint64_t known(const Clock& clock, uint64_t gpu, size_t stream) {
    const auto at = clock.find({gpu, stream});
    return at == clock.end() ? 0 : at->second;
  }

  // NCCL's abort would wait for the end of all that has its calls, for ever.
  void look_for_graphs() noexcept;
  void go_on(const std::stop_token& stop);
  void look_for_failure();

  Settings settings_;
  std::vector<std::unique_ptr<FakeWorld>> worlds_;  // that ids of its own or of others name
  int ids_ = 0;                                     // that it made
  Call last_call_;                                  // of a communicator
  uint64_t number_;                                 // of all that this process made
  DeviceProperties properties_;
  std::set<std::string> loaded_;
  size_t pinned_ = 0, most_pinned_ = 0;
  int64_t allocation_count_ = 0;
  size_t allocated_ = 0;                      // of the GPU, also by communicators
  bool groups_ = false;                       // calls of a communicator
  std::map<const std::byte*, Block> blocks_;  // by their begin
  std::vector<FakeStream*> streams_;
  Clock host_;  // what the host has waited for
  int captures_ = 0;
  bool stuck_ = false;  // something was destroyed whose work would never have ended
  int live_streams_ = 0, live_events_ = 0, live_works_ = 0, live_graphs_ = 0;
  int calling_graphs_ = 0;  // of these, with calls of communicators
  bool given_up_ = false;   // a communicator, while one of those, or such a capture, was there
  std::atomic<int64_t> call_count_ = 0;
  int64_t wait_count_ = 0;
  std::vector<std::string> calls_;
  int64_t plan_count_ = 0;
  int planners_ = 0;  // that have come
  std::condition_variable planner_came_;
  std::exception_ptr failure_;  // of what went on by itself
  std::jthread by_itself_;
};

}  // namespace dpt::cuda
