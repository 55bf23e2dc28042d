#include "backend/cuda/module/device.h"

#include <array>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "backend/cuda/kernels/all.h"
#include "backend/cuda/module/check.h"
#include "backend/cuda/module/communicator.h"
#include "backend/cuda/module/dnn_plan.h"
#include "backend/cuda/module/entries.h"
#include "backend/cuda/module/matmul.h"
#include "backend/cuda/module/stream.h"
#include "base/fail.h"
#include "base/units.h"

namespace dpt::cuda {
namespace {

// cuDNN's handles of a GPU: one to run everything, and one for each thread that makes plans at the
// same time. Plans may refer to the handle that they were made with, so all live as long as the
// GPU.
class DnnHandles {
 public:
  explicit DnnHandles(int gpu) : gpu_(gpu), text_(text_of(gpu)) {}
  ~DnnHandles() {
    for (void* handle : all_) Dnn::instance().destroy_handle(handle);
  }
  DnnHandles(const DnnHandles&) = delete;
  DnnHandles& operator=(const DnnHandles&) = delete;

  // One that no other thread has now. Thread: any.
  class Lease {
   public:
    explicit Lease(DnnHandles& from) : from_(from) {
      check(cudaSetDevice(from.gpu_), "cudaSetDevice");
      const std::lock_guard lock(from.mutex_);
      if (from.idle_.empty()) {
        from.idle_.reserve(from.all_.size() + 1);
        from.all_.reserve(from.all_.size() + 1);
        from.idle_.push_back(from.all_.emplace_back(Dnn::instance().make_handle()));
      }
      handle_ = from.idle_.back();
      from.idle_.pop_back();
      first_ = from.all_.front();
    }
    ~Lease() {
      const std::lock_guard lock(from_.mutex_);
      from_.idle_.push_back(handle_);
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    void* for_plans() const { return handle_; }
    void* for_runs() const { return first_; }
    const std::string& gpu() const { return from_.text_; }  // as Dnn::plan takes it

   private:
    DnnHandles& from_;
    void *handle_ = nullptr, *first_ = nullptr;
  };

 private:
  static std::string text_of(int gpu) {
    const DeviceProperties p = properties_of(gpu);
    int driver = 0;
    check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    return fmt::format("{}, compute {}.{}, {} multiprocessors, {} bytes, driver {}", p.name,
                       p.major, p.minor, p.multiprocessors, p.memory, driver);
  }

  int gpu_;
  std::string text_;
  std::mutex mutex_;
  std::vector<void*> all_, idle_;
};

class DnnWork : public RuntimeWork {
 public:
  template <class Description>
  DnnWork(const DnnHandles::Lease& handle, const Description& d)
      : handle_(handle.for_runs()),
        plan_(Dnn::instance().plan(handle.for_plans(), handle.gpu(), d)) {}
  size_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  std::string algorithm() const override { return "cudnn " + plan_->name(); }
  bool from_cache() const override { return plan_->from_cache(); }
  void enqueue(cudaStream_t stream, std::span<std::byte* const> tensors,
               std::byte* workspace) override {
    Dnn::instance().set_stream(handle_, stream);
    plan_->run(handle_, tensors, workspace);
  }

 private:
  void* handle_;  // of the device
  std::unique_ptr<DnnPlan> plan_;
};

// A weight gradient in f32 for operands of the half T. cuDNN writes it in T, behind its workspace,
// and a kernel converts it.
template <class T>
class WidenedWork final : public DnnWork {
 public:
  WidenedWork(const DnnHandles::Lease& handle, const DnnConvolution& in_half)
      : DnnWork(handle, in_half), elements_(in_half.w.elements()) {}
  size_t workspace_bytes() const override {
    return behind() + sizeof(T) * static_cast<size_t>(elements_);
  }
  void enqueue(cudaStream_t stream, std::span<std::byte* const> tensors,
               std::byte* workspace) override {
    std::byte* const half = workspace + behind();
    DnnWork::enqueue(stream, std::array{tensors[0], tensors[1], half}, workspace);
    const Convert<T, float> convert{.x = reinterpret_cast<const T*>(half),
                                    .y = reinterpret_cast<float*>(tensors[2])};
    enqueue_kernel({kernel_id<Convert<T, float>>, elements_, &convert, sizeof convert}, stream);
  }

 private:
  size_t behind() const { return aligned(DnnWork::workspace_bytes()); }
  int64_t elements_;
};

std::unique_ptr<DeviceWork> prepare_convolution(const DnnHandles::Lease& handle,
                                                DnnConvolution convolution) {
  if (convolution.out == convolution.in) return std::make_unique<DnnWork>(handle, convolution);
  require(convolution.pass == ConvolutionPass::weight_gradient && convolution.out == DType::f32,
          "a convolution makes the type that it takes, a weight gradient perhaps f32");
  convolution.out = convolution.in;
  if (convolution.in == DType::f16) return std::make_unique<WidenedWork<F16>>(handle, convolution);
  return std::make_unique<WidenedWork<Bf16>>(handle, convolution);
}

class RuntimeDevice final : public DeviceApi {
 public:
  explicit RuntimeDevice(int index) : dnn_(index) {
    check(cudaSetDevice(index), "cudaSetDevice");
    properties_ = properties_of(index);
    need_kernels();
    check(cublasLtCreate(&cublas_), "cublasLtCreate");
  }
  ~RuntimeDevice() override {
    if (cublas_) cublasLtDestroy(cublas_);
  }
  RuntimeDevice(const RuntimeDevice&) = delete;
  RuntimeDevice& operator=(const RuntimeDevice&) = delete;

  const DeviceProperties& properties() const override { return properties_; }

  std::byte* allocate(MemoryKind kind, size_t bytes) override {
    void* out = nullptr;
    const bool device = kind == MemoryKind::device;
    const cudaError_t status = device ? cudaMalloc(&out, bytes) : cudaMallocHost(&out, bytes);
    if (status == cudaErrorMemoryAllocation && device) {
      cudaGetLastError();
      size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      fail(Fault::memory,
           "cudaMalloc: {} MiB are needed, but only {} of {} MiB are free on {}; use a smaller "
           "batch",
           bytes / kMiB, free / kMiB, total / kMiB, properties_.name);
    }
    check(status, device ? "cudaMalloc" : "cudaMallocHost");
    return static_cast<std::byte*>(out);
  }
  void free(MemoryKind kind, std::byte* memory) noexcept override {
    if (kind == MemoryKind::device)
      cudaFree(memory);
    else
      cudaFreeHost(memory);
  }
  size_t free_memory() override {
    size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    return free;
  }

  std::unique_ptr<Stream> make_stream() override { return make_runtime_stream(); }
  std::unique_ptr<Stream> make_urgent_stream() override { return make_runtime_stream(true); }
  std::unique_ptr<Event> make_event() override { return make_runtime_event(); }

  std::unique_ptr<DeviceWork> prepare(const Matmul& matmul) override {
    return prepare_matmul(cublas_, matmul);
  }
  std::unique_ptr<DeviceWork> prepare(const DnnConvolution& convolution) override {
    return prepare_convolution(dnn("convolutions need"), convolution);
  }
  std::unique_ptr<DeviceWork> prepare(const DnnNorm& norm) override {
    return std::make_unique<DnnWork>(dnn("norms need"), norm);
  }
  std::unique_ptr<DeviceWork> prepare(const DnnPool& pool) override {
    return std::make_unique<DnnWork>(dnn("pooling needs"), pool);
  }
  std::unique_ptr<DeviceWork> prepare(const DnnAttention& attention) override {
    return std::make_unique<DnnWork>(dnn("attention needs"), attention);
  }

  CommunicatorId new_communicator_id() override { return new_nccl_id(); }
  std::unique_ptr<Communicator> join(const CommunicatorId& id, int rank, int ranks,
                                     const WhileWaiting& waiting, int most_blocks) override {
    return join_nccl(id, rank, ranks, waiting, most_blocks);
  }
  void abort(std::span<Communicator* const> communicators) noexcept override {
    abort_nccl(communicators);
  }

  void reach(int index) override {
    int can = 0;
    if (index == properties_.index) return;
    check(cudaDeviceCanAccessPeer(&can, properties_.index, index), "cudaDeviceCanAccessPeer");
    if (can == 0) return;
    const cudaError_t status = cudaDeviceEnablePeerAccess(index, 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled)
      cudaGetLastError();
    else
      check(status, "cudaDeviceEnablePeerAccess");
  }

  void synchronise() override { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

 private:
  DnnHandles::Lease dnn(std::string_view what) {
    if (const std::string problem = Dnn::instance().problem(); !problem.empty())
      fail(Fault::device, "{} cuDNN: {}", what, problem);
    return DnnHandles::Lease(dnn_);
  }
  // Throws if the own kernels were not compiled for this GPU or for a compatible one.
  void need_kernels() const {
    cudaFuncAttributes ignored;
    const cudaError_t status =
        cudaFuncGetAttributes(&ignored, entries_of<BasicKernels>().front().function);
    if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction ||
        status == cudaErrorUnsupportedPtxVersion) {
      cudaGetLastError();
      fail(Fault::device,
           "libdptrain_cuda.so has no kernels for {} (compute {}.{}), only for {}: build with "
           "-Dgpu_archs={}{}",
           properties_.name, properties_.major, properties_.minor, DPT_CUDA_ARCHS,
           properties_.major, properties_.minor);
    }
    check(status, "cudaFuncGetAttributes");
  }

  DeviceProperties properties_;
  cublasLtHandle_t cublas_ = nullptr;
  DnnHandles dnn_;
};

}  // namespace

DeviceProperties properties_of(int index) {
  cudaDeviceProp p{};
  check(cudaGetDeviceProperties(&p, index), "cudaGetDeviceProperties");
  return {.index = index,
          .name = p.name,
          .bus_id = fmt::format("{:04x}:{:02x}:{:02x}.0", p.pciDomainID, p.pciBusID, p.pciDeviceID),
          .major = p.major,
          .minor = p.minor,
          .multiprocessors = p.multiProcessorCount,
          .memory = p.totalGlobalMem};
}

std::unique_ptr<DeviceApi> open_runtime_device(int index) {
  return std::make_unique<RuntimeDevice>(index);
}

}  // namespace dpt::cuda
