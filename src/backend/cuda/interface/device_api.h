// The interface between dptrain and one GPU: all use of CUDA goes through it, without CUDA's
// headers. libdptrain_cuda.so implements it with the real libraries (load.h). The tests implement
// it with a fake that computes on the host and checks the order of calls.
//
// Threads: a DeviceApi and the objects it makes belong to the thread that made it, except for
// events that streams of other GPUs wait for. A DeviceApi must outlive the objects it made.
// "Enqueues" means that the call returns at once and the GPU does the work after earlier work on
// the same stream. Pointers are device memory, or pinned host memory where stated.
//
// Errors: every call throws Error with the name of the library's function and the library's
// message: Fault::memory if memory is exhausted, Fault::rank for communicators, otherwise
// Fault::device.
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

// Rounds up to the alignment of allocate().
constexpr size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

struct DeviceProperties {
  int index = 0;             // among the GPUs that CUDA shows this process
  std::string name;          // "NVIDIA H200"
  std::string bus_id;        // "0000:1b:00.0": identifies a GPU of the machine, whatever its index
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t memory = 0;  // bytes
};

// Work of a library that was prepared for fixed shapes. The order of its tensors is defined by its
// description (device_work.h); their addresses must be multiples of 16.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;
  virtual size_t workspace_bytes() const = 0;
  virtual std::string algorithm() const = 0;  // the chosen algorithm, for reports
  // Whether the plan was read from the user's cache directory (plan_cache.h).
  virtual bool from_cache() const { return false; }
};

// A CUDA event: a point in a stream.
class Event {
 public:
  virtual ~Event() = default;
  virtual bool passed() = 0;  // does not wait; true if it was never recorded
  virtual void wait() = 0;    // blocks the calling thread
};

// A CUDA graph: the work captured between begin_capture() and end_capture(), which can be launched
// many times.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
  virtual size_t nodes() const = 0;
};

// A CUDA stream. Work on a stream runs in order; different streams are only ordered by events.
class Stream {
 public:
  virtual ~Stream() = default;

  // Enqueue. Source and target may each be device or pinned memory. 0 bytes: pointers are not read.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual void fill(void* to, uint8_t byte, size_t bytes) = 0;
  // Enqueues an own kernel, whose struct is copied before the call returns. Prefer launch() of
  // launch.h.
  virtual void launch(const KernelLaunch& kernel) = 0;
  // Enqueues. workspace: workspace_bytes() of the work, aligned to 256 bytes; no other stream may
  // use it at the same time.
  virtual void run(DeviceWork& work, std::span<std::byte* const> tensors, std::byte* workspace) = 0;

  virtual void record(Event& event) = 0;
  // Makes this stream wait for the point that was recorded last. The event may be of another GPU of
  // this process, if that GPU's thread has recorded it and this stream is not capturing.
  virtual void wait(Event& event) = 0;
  virtual void synchronise() = 0;  // blocks the calling thread; never while capturing

  // Between these two calls work is recorded instead of run. This includes work on other streams
  // that wait for an event of this one; this stream must wait for them before the end. Nothing may
  // be allocated or prepared during a capture.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<CapturedGraph> end_capture() = 0;
  // Ends a failed capture and discards it. If a capture is left open, a communicator with calls in
  // it can neither be finished nor aborted.
  virtual void cancel_capture() noexcept = 0;
  virtual void launch(CapturedGraph& graph) = 0;  // enqueues the whole graph
};

// Called repeatedly by a thread that waits for other ranks within a call, with the seconds that it
// has waited in that call. Throws to abandon the call.
using WhileWaiting = std::function<void(double seconds)>;

// An NCCL communicator: ranks with one GPU each. Every rank makes the same calls in the same order,
// except for send() and receive(), which concern two ranks. Calls may be captured, and may wait
// until the other ranks have made them too. Destruction without finish() does abort().
class Communicator {
 public:
  virtual ~Communicator() = default;
  // Enqueues: data [count] becomes the sum over all ranks, with the same bits on every rank.
  virtual void all_reduce(Stream& stream, void* data, size_t count, DType dtype) = 0;
  // Enqueues: data [ranks, count]. Row `rank` becomes the sum of that row over all ranks; other
  // rows do not change.
  virtual void reduce_scatter(Stream& stream, void* data, size_t count, DType dtype) = 0;
  // Enqueues: data [ranks, count]. Row r becomes row r of rank r.
  virtual void all_gather(Stream& stream, void* data, size_t count, DType dtype) = 0;
  // Enqueues: copies data [bytes] of rank `root` to all ranks.
  virtual void broadcast(Stream& stream, void* data, size_t bytes, int root) = 0;
  // Enqueue. Messages between two ranks arrive in the order in which they were sent. Either call
  // may wait for the other one.
  virtual void send(Stream& stream, const void* data, size_t bytes, int to) = 0;
  virtual void receive(Stream& stream, void* data, size_t bytes, int from) = 0;
  // Calls between begin_group() and end_group() are enqueued by end_group() as one. Enqueue nothing
  // else on the stream in between. Prefer CallGroup. cancel_group() ends a group in which a call
  // failed; the communicator can then only be aborted.
  virtual void begin_group() = 0;
  virtual void end_group() = 0;
  virtual void cancel_group() noexcept = 0;
  virtual void check() = 0;   // throws the error of an enqueued call, if there is one
  virtual void finish() = 0;  // on all ranks. REQUIRES: all enqueued calls are done
  // Ends calls that wait for a rank that will not come. REQUIRES: graphs and captures with calls of
  // this communicator are destroyed.
  virtual void abort() noexcept = 0;
};
using CommunicatorId = std::array<char, 128>;

// RAII form of a group of calls. Cancels the group unless end() was called.
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

  // Uninitialized memory, aligned to 256 bytes. Prefer Memory below.
  virtual std::byte* allocate(MemoryKind kind, size_t bytes) = 0;
  virtual void free(MemoryKind kind, std::byte* memory) noexcept = 0;
  // Bytes of GPU memory that no process uses.
  virtual size_t free_memory() = 0;

  virtual std::unique_ptr<Stream> make_stream() = 0;
  // A stream with higher priority: its kernels start before those of other streams if both are
  // ready, also within a graph.
  virtual std::unique_ptr<Stream> make_urgent_stream() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;

  // Throw NoAlgorithm if the library supports no such operation. Thread: those of cuDNN may be
  // called by several threads at a time, while the thread that opened the GPU waits for them.
  virtual std::unique_ptr<DeviceWork> prepare(const Matmul& matmul) = 0;
  virtual std::unique_ptr<DeviceWork> prepare(const DnnConvolution& convolution) = 0;
  virtual std::unique_ptr<DeviceWork> prepare(const DnnNorm& norm) = 0;
  virtual std::unique_ptr<DeviceWork> prepare(const DnnPool& pool) = 0;
  virtual std::unique_ptr<DeviceWork> prepare(const DnnAttention& attention) = 0;

  // One rank makes the id and passes it to the others by other means; then all ranks call join(),
  // which returns when all have joined. most_blocks: thread blocks that a call may occupy, also
  // while it waits for other ranks; 0: NCCL chooses.
  virtual CommunicatorId new_communicator_id() = 0;
  virtual std::unique_ptr<Communicator> join(const CommunicatorId& id, int rank, int ranks,
                                             const WhileWaiting& waiting, int most_blocks) = 0;
  std::unique_ptr<Communicator> join(const CommunicatorId& id, int rank, int ranks,
                                     const WhileWaiting& waiting) {
    return join(id, rank, ranks, waiting, 0);
  }
  // Calls Communicator::abort() of all of them at the same time; null entries are ignored. Each
  // abort() waits for the whole GPU, including calls of the other communicators.
  virtual void abort(std::span<Communicator* const> communicators) noexcept = 0;

  // Enables direct copies between this GPU and the GPU with that index, if the machine supports
  // them; otherwise copies go through host memory.
  virtual void reach(int index) = 0;

  virtual void synchronise() = 0;  // blocks the calling thread until all streams are done
};

// Owns memory of a DeviceApi, which must outlive it.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceApi& api, MemoryKind kind, size_t bytes)
      : api_(&api),
        kind_(kind),
        bytes_(bytes),
        data_(bytes ? api.allocate(kind, bytes) : nullptr) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_) api_->free(kind_, data_);
  }
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void swap(DeviceBuffer& other) noexcept {
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
