// The seam between dptrain and one GPU: everything that is asked of CUDA, and nothing of CUDA's own
// headers. libdptrain_cuda.so implements it with the real libraries (load.h), the tests with a fake
// that computes on the host and watches the order of what it is told.
//
// A DeviceApi, and all that it makes, is used by the thread that made it, but for events that
// streams of other GPUs wait for, and outlives what it made. "Enqueues" means: returns at once; the
// device does it after what the same stream was told before. Pointers are device memory, or pinned
// host memory where that is said.
//
// Every call throws Error with the name of the library's function and the library's own words:
// Fault::memory where memory is missing, Fault::rank from communicators, else Fault::device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "backend/cuda/interface/device_work.h"
#include "backend/cuda/kernels/own_kernel.h"
#include "base/tensor.h"

namespace dpt::cuda {

// Up to where memory of its own may begin behind so many bytes, as allocate() gives it.
constexpr size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

struct DeviceProperties {
  int index = 0;             // among the GPUs that CUDA shows this process
  std::string name;          // "NVIDIA H200"
  std::string bus_id;        // "0000:1b:00.0": tells GPUs of a machine apart whatever their index
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t memory = 0;  // bytes
};

// Work of a library, prepared for fixed shapes. Its tensors come in the order that the description
// gives (device_work.h), at addresses that are multiples of 16.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;
  virtual size_t workspace_bytes() const = 0;
  virtual std::string algorithm() const = 0;  // which one was chosen, for reports
  // Its plan was made at an earlier start (plan_cache.h).
  virtual bool from_cache() const { return false; }
};

// A point in a stream.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool passed() = 0;  // never waits; true if it was never recorded
  virtual void wait() = 0;    // the calling thread waits
};

// What a stream was told between begin_capture and end_capture, to be done again and again.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual size_t nodes() const = 0;
};

// Things done one after the other. Nothing is ordered between two streams but by events.
class Stream {
 public:
  virtual ~Stream() = default;

  // Enqueues. Source and target may each be device or pinned memory; of 0 bytes anything.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual void fill(void* to, uint8_t byte, size_t bytes) = 0;
  // Enqueues an own kernel, which is copied before this returns. Better called through
  // launch() of launch.h.
  virtual void launch(const KernelLaunch& kernel) = 0;
  // Enqueues; workspace: as many bytes as the work wants, at a multiple of 256, which nothing on
  // another stream may use at the same time.
  virtual void run(DeviceWork& work, std::span<std::byte* const> tensors, std::byte* workspace) = 0;

  virtual void record(Event& event) = 0;
  // This stream, for the point that was last recorded; also of another GPU of this process, whose
  // thread has recorded it before, but not while capturing.
  virtual void wait(Event& event) = 0;
  virtual void synchronise() = 0;  // the calling thread; never while capturing

  // Between the two nothing is done, all is recorded, also what other streams do after they waited
  // for an event of this one; they must have been waited for before the end. Nothing may be
  // allocated or prepared meanwhile.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<CapturedGraph> end_capture() = 0;
  // Ends a capture that failed, and forgets what was recorded. A communicator whose calls are in a
  // capture that is left open can neither be finished nor given up.
  virtual void cancel_capture() noexcept = 0;
  virtual void launch(CapturedGraph& graph) = 0;  // enqueues all of it
};

// Called again and again by a thread that waits for other ranks in one call, with how long it has
// waited in that call; throws to give them up.
using WhileWaiting = std::function<void(double seconds)>;

// Ranks that sum and share buffers, one GPU each (NCCL). Every rank makes the same calls in the
// same order, but for send() and receive(), which are of two; they may be captured, and may wait
// for the others to make them too. One that ends without finish() is given up: abort().
class Communicator {
 public:
  virtual ~Communicator() = default;
  // Enqueues: data [count] of every rank becomes the sum over all, the same bits everywhere.
  virtual void all_reduce(Stream& stream, void* data, size_t count, DType dtype) = 0;
  // Enqueues: of data [ranks, count] row `rank` becomes the sum over all ranks' rows of that
  // number; other rows stay as they are.
  virtual void reduce_scatter(Stream& stream, void* data, size_t count, DType dtype) = 0;
  // Enqueues: of data [ranks, count] row r becomes that of rank r.
  virtual void all_gather(Stream& stream, void* data, size_t count, DType dtype) = 0;
  // Enqueues: data of `root` goes to all.
  virtual void broadcast(Stream& stream, void* data, size_t bytes, int root) = 0;
  // Enqueue: the bytes that one rank sends to another one are what that one receives from it, the
  // first the first. Either may wait for the other.
  virtual void send(Stream& stream, const void* data, size_t bytes, int to) = 0;
  virtual void receive(Stream& stream, void* data, size_t bytes, int from) = 0;
  // Calls between begin_group() and end_group() are enqueued by end_group(), as one. Meanwhile the
  // stream is told nothing else. Better used through CallGroup. cancel_group() ends a group in
  // which a call failed; the communicator is then good for abort() alone.
  virtual void begin_group() = 0;
  virtual void end_group() = 0;
  virtual void cancel_group() noexcept = 0;
  virtual void check() = 0;   // throws what went wrong with a call that was enqueued
  virtual void finish() = 0;  // all ranks. REQUIRES: all that was enqueued is done
  // Ends calls that wait for a rank that will not come. REQUIRES: graphs and captures with its
  // calls are gone.
  virtual void abort() noexcept = 0;
};
using CommunicatorId = std::array<char, 128>;

// A group of calls. Cancels it unless end() was called.
class CallGroup {
 public:
  explicit CallGroup(Communicator& communicator) : communicator_(communicator) {
    communicator_.begin_group();
  }
  ~CallGroup() {
    if (open_) communicator_.cancel_group();
  }
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;
  void end() {
    open_ = false;
    communicator_.end_group();
  }

 private:
  Communicator& communicator_;
  bool open_ = true;
};

enum class MemoryKind { device, pinned };

class DeviceApi {
 public:
  virtual ~DeviceApi() = default;
  virtual const DeviceProperties& properties() const = 0;

  // Not cleared; at a multiple of 256. Better called through Memory below.
  virtual std::byte* allocate(MemoryKind kind, size_t bytes) = 0;
  virtual void free(MemoryKind kind, std::byte* memory) noexcept = 0;
  // Bytes of the GPU that nobody has now, in this process or another.
  virtual size_t free_memory() = 0;

  virtual std::unique_ptr<Stream> make_stream() = 0;
  // Its kernels start before those of other streams where both are ready, also within a graph that
  // has both.
  virtual std::unique_ptr<Stream> make_urgent_stream() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;

  // Throws NoAlgorithm where there is none. Thread: those of cuDNN any, several at a time, while
  // the thread that made the GPU waits for them.
  virtual std::unique_ptr<DeviceWork> prepare(const Matmul& matmul) = 0;
  virtual std::unique_ptr<DeviceWork> prepare(const DnnConvolution& convolution) = 0;
  virtual std::unique_ptr<DeviceWork> prepare(const DnnNorm& norm) = 0;
  virtual std::unique_ptr<DeviceWork> prepare(const DnnPool& pool) = 0;
  virtual std::unique_ptr<DeviceWork> prepare(const DnnAttention& attention) = 0;

  // One rank makes the id, all get it in some other way, all join and wait until all have.
  // most_blocks: thread blocks that a call occupies at most, also while it waits for other ranks;
  // 0: the library chooses.
  virtual CommunicatorId new_communicator_id() = 0;
  virtual std::unique_ptr<Communicator> join(const CommunicatorId& id, int rank, int ranks,
                                             const WhileWaiting& waiting, int most_blocks) = 0;
  std::unique_ptr<Communicator> join(const CommunicatorId& id, int rank, int ranks,
                                     const WhileWaiting& waiting) {
    return join(id, rank, ranks, waiting, 0);
  }
  // Communicator::abort() of all of these at once. Each one's waits until the whole GPU has done
  // its work, and so for calls of another one that waits, too. null: none.
  virtual void abort(std::span<Communicator* const> communicators) noexcept = 0;

  // From now on copies between this GPU's memory and that of the GPU of that number go directly,
  // where the machine can do so; else they go by way of the host's.
  virtual void reach(int index) = 0;

  virtual void synchronise() = 0;  // the calling thread waits for all streams
};

// Memory that its owner frees.
class Memory {
 public:
  Memory() = default;
  Memory(DeviceApi& api, MemoryKind kind, size_t bytes)
      : api_(&api),
        kind_(kind),
        bytes_(bytes),
        data_(bytes ? api.allocate(kind, bytes) : nullptr) {}
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory() {
    if (data_) api_->free(kind_, data_);
  }
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void swap(Memory& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(kind_, other.kind_);
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
  }
  DeviceApi* api_ = nullptr;
  MemoryKind kind_ = MemoryKind::device;
  size_t bytes_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace dpt::cuda
