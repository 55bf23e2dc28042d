// Where the ranks of fake GPUs meet: memory that threads and processes map. As NCCL, it does not
// know who will come, and waits for all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "backend/cuda/host_kernels.h"
#include "backend/cuda/interface/device_api.h"
#include "base/units.h"

namespace dpt::cuda {

// What a rank calls; all have to make the same calls.
struct FakeCall {
  enum class Kind : uint32_t { all_reduce, reduce_scatter, all_gather, broadcast };
  Kind kind = Kind::all_reduce;
  DType dtype = DType::f32;  // of a broadcast: u8
  int root = 0;
  size_t count = 0;
  bool operator==(const FakeCall&) const = default;
};

class FakeApi;

class FakeWorld {
 public:
  static constexpr int kMostGroups = 16, kMostRanks = 4;
  static constexpr size_t kMostBytes = 4 * kMiB;  // of one call
  FakeWorld();                                    // a new one; children have it, too
  explicit FakeWorld(const std::string& name);    // that of another process
  ~FakeWorld();
  FakeWorld(const FakeWorld&) = delete;
  FakeWorld& operator=(const FakeWorld&) = delete;
  std::string name() const;  // for processes of this user, as long as this one lives

 private:
  friend class FakeCommunicator;
  // A rank's part. What it brought to its call k lies in place k % 2: who can begin call k + 2 has
  // seen the end of k + 1, which nobody comes to before he has done with k.
  struct Seat {
    std::atomic<uint64_t> calls = 0;  // that it came to
    std::atomic<bool> joined = false, finished = false, aborted = false;
    std::atomic<pid_t> process = 0;
    std::atomic<uint64_t> captured = 0;  // of its calls
    FakeCall call[2];
    uint32_t order[2];  // of the first rank: which one's numbers a sum begins with
    std::byte data[2][kMostBytes];
    // What it sends, until that is taken.
    std::atomic<int> to = 0;  // whose it is, from 1; 0: nobody's
    size_t bytes = 0;
    std::byte sent[kMostBytes];
  };
  struct Group {
    Seat seat[kMostRanks];
  };
  struct Shared {
    Group group[kMostGroups];  // of ranks, which don't meet with others
  };
  void map();
  int file_;
  Shared* shared_ = nullptr;
};

// Of one GPU only one may be under way at a time, of whatever communicator, and each has to be
// behind the one before by streams and events: in which order two of them begin would be chance,
// and where one takes the place that the other one waits for, GPUs wait for each other for ever.
//
// Done in two parts, since the others may not have come: arrive() until it says so, then take().
class FakeCommunicator : public Communicator {
 public:
  FakeCommunicator(FakeApi& api, FakeWorld& world, int group, int rank, int ranks,
                   const WhileWaiting& waiting);
  void all_reduce(Stream& stream, void* data, size_t count, DType dtype) override;
  void reduce_scatter(Stream& stream, void* data, size_t count, DType dtype) override;
  void all_gather(Stream& stream, void* data, size_t count, DType dtype) override;
  void broadcast(Stream& stream, void* data, size_t bytes, int root) override;
  // Strict: what is sent is sent when the other one takes it.
  void send(Stream& stream, const void* data, size_t bytes, int to) override;
  void receive(Stream& stream, void* data, size_t bytes, int from) override;
  void begin_group() override;
  void end_group() override;
  void cancel_group() noexcept override;
  void check() override;
  void finish() override;
  void abort() noexcept override;
  ~FakeCommunicator() override { abort(); }
  bool end_calls() noexcept;               // all that wait; whether that had not been done
  bool others_end_calls() const noexcept;  // within a while

 private:
  struct State;
  // NCCL's calls go on behind those of a communicator that does not block: all are waited for.
  void settle(const std::function<bool()>& done) const;
  // NCCL registers the buffers of a call that is captured: ranks wait for each other, and see
  // nothing else meanwhile.
  void register_buffers();
  void enqueue(Stream& stream, const std::string& what, const std::vector<Touched>& touched,
               std::function<bool()> ready, std::function<void()> run);
  void enqueue(Stream& stream, void* data, const FakeCall& call);
  void sums(Stream& stream, void* data, FakeCall::Kind kind, size_t count, DType dtype);
  FakeApi& api_;
  FakeWorld::Group& group_;
  int rank_, ranks_;
  WhileWaiting waiting_;
  std::shared_ptr<bool> aborted_ = std::make_shared<bool>(false);
  bool finished_ = false;
  std::shared_ptr<State> state_;
};

}  // namespace dpt::cuda
