#include "backend/cuda/module/stream.h"

#include <array>
#include <string>

#include "backend/cuda/kernels/all.h"
#include "backend/cuda/module/check.h"
#include "backend/cuda/module/entries.h"

namespace dpt::cuda {
namespace {

template <class... List>
auto tables(KernelLists<List...>) {
  return std::array{entries_of<List>()...};
}

const KernelEntry& entry_of(KernelId id) {
  static const auto all = tables(AllKernels{});
  require(id.list < all.size() && id.index < all[id.list].size(), "an own kernel is in the lists");
  return all[id.list][id.index];
}

class RuntimeEvent final : public Event {
 public:
  RuntimeEvent() {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  ~RuntimeEvent() override { cudaEventDestroy(event_); }
  RuntimeEvent(const RuntimeEvent&) = delete;
  RuntimeEvent& operator=(const RuntimeEvent&) = delete;
  bool passed() override {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      cudaGetLastError();  // not an error; clears it, or a later call would return it
      return false;
    }
    check(status, "cudaEventQuery");
    return true;
  }
  void wait() override { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  cudaEvent_t handle() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class RuntimeGraph final : public CapturedGraph {
 public:
  explicit RuntimeGraph(cudaGraph_t graph) {  // takes ownership
    const cudaError_t counted = cudaGraphGetNodes(graph, nullptr, &nodes_);
    // Let nodes keep the priority of the stream that they were recorded on.
    const cudaError_t status =
        cudaGraphInstantiate(&graph_, graph, cudaGraphInstantiateFlagUseNodePriority);
    cudaGraphDestroy(graph);
    check(counted, "cudaGraphGetNodes");
    check(status, "cudaGraphInstantiate");
  }
  ~RuntimeGraph() override { cudaGraphExecDestroy(graph_); }
  RuntimeGraph(const RuntimeGraph&) = delete;
  RuntimeGraph& operator=(const RuntimeGraph&) = delete;
  size_t nodes() const override { return nodes_; }
  cudaGraphExec_t handle() const { return graph_; }

 private:
  cudaGraphExec_t graph_ = nullptr;
  size_t nodes_ = 0;
};

class RuntimeStream final : public Stream {
 public:
  explicit RuntimeStream(bool urgent) {
    int lowest = 0, highest = 0;  // 0 is the default and lowest priority; higher ones are negative
    if (urgent)
      check(cudaDeviceGetStreamPriorityRange(&lowest, &highest),
            "cudaDeviceGetStreamPriorityRange");
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, highest),
          "cudaStreamCreateWithPriority");
  }
  ~RuntimeStream() override { cudaStreamDestroy(stream_); }
  RuntimeStream(const RuntimeStream&) = delete;
  RuntimeStream& operator=(const RuntimeStream&) = delete;

  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
  }
  void fill(void* to, uint8_t byte, size_t bytes) override {
    if (bytes == 0) return;
    check(cudaMemsetAsync(to, byte, bytes, stream_), "cudaMemsetAsync");
  }
  void launch(const KernelLaunch& kernel) override { enqueue_kernel(kernel, stream_); }
  void run(DeviceWork& work, std::span<std::byte* const> tensors, std::byte* workspace) override {
    static_cast<RuntimeWork&>(work).enqueue(stream_, tensors, workspace);
  }

  void record(Event& event) override {
    check(cudaEventRecord(static_cast<RuntimeEvent&>(event).handle(), stream_), "cudaEventRecord");
  }
  void wait(Event& event) override {
    check(cudaStreamWaitEvent(stream_, static_cast<RuntimeEvent&>(event).handle(), 0),
          "cudaStreamWaitEvent");
  }
  void synchronise() override { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

  // Thread-local mode: other threads, which use other GPUs, may allocate meanwhile.
  void begin_capture() override {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  }
  std::unique_ptr<CapturedGraph> end_capture() override {
    cudaGraph_t graph = nullptr;
    check(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    return std::make_unique<RuntimeGraph>(graph);
  }
  void cancel_capture() noexcept override {
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();  // clears the error with which an invalid capture ends
  }
  void launch(CapturedGraph& graph) override {
    check(cudaGraphLaunch(static_cast<RuntimeGraph&>(graph).handle(), stream_), "cudaGraphLaunch");
  }
  cudaStream_t handle() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace

void enqueue_kernel(const KernelLaunch& kernel, cudaStream_t stream) {
  const KernelEntry& entry = entry_of(kernel.id);
  require(kernel.bytes == entry.bytes, "an own kernel has the size that the module knows");
  const cudaError_t status = entry.launch(kernel.kernel, kernel.count, stream);
  if (status != cudaSuccess)
    check(status, ("cudaLaunchKernelExC of " + std::string(entry.name)).c_str());
}

std::unique_ptr<Stream> make_runtime_stream(bool urgent) {
  return std::make_unique<RuntimeStream>(urgent);
}
std::unique_ptr<Event> make_runtime_event() { return std::make_unique<RuntimeEvent>(); }
cudaStream_t handle_of(Stream& stream) { return static_cast<RuntimeStream&>(stream).handle(); }

}  // namespace dpt::cuda
