// cuDNN's plan for a convolution, a norm, pooling or attention, made with or without a GPU.
// dnn_plan.cpp is the only file that knows cudnn_frontend, whose headers take half a minute to
// read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "backend/cuda/interface/device_work.h"
#include "backend/cuda/interface/libraries.h"
#include "backend/cuda/interface/plan_cache.h"

namespace dpt::cuda {

class DnnPlan {
 public:
  virtual ~DnnPlan() = default;
  virtual size_t workspace_bytes() const = 0;
  virtual std::string name() const = 0;   // of the engine and its settings
  virtual bool from_cache() const = 0;    // it was not made, but taken from the user's PlanCache
  virtual std::string saved() const = 0;  // for PlanCache; empty where cuDNN cannot save it
  // Tensors as device_work.h orders them. REQUIRES: made for a GPU, `handle` is a cudnnHandle_t.
  virtual void run(void* handle, std::span<std::byte* const> tensors, std::byte* workspace) = 0;
};

// cuDNN as it was found, and whether dptrain was built for it. Calls below REQUIRE problem() empty.
class Dnn {
 public:
  static Dnn& instance();       // loaded at the first call
  std::string problem() const;  // empty: it can be used
  std::string version() const;  // "9.19.0, front end 1.32.0"

  void* make_handle();  // of the calling thread's GPU
  void destroy_handle(void* handle) noexcept;
  void set_stream(void* handle, void* stream);  // a cudaStream_t

  // Throws NoAlgorithm where cuDNN has no plan within kDnnWorkspace. gpu: all that plans depend on,
  // but for the versions of the libraries. Thread: any, each with a handle of its own.
  std::unique_ptr<DnnPlan> plan(void* handle, const std::string& gpu, const DnnConvolution& d);
  std::unique_ptr<DnnPlan> plan(void* handle, const std::string& gpu, const DnnNorm& d);
  std::unique_ptr<DnnPlan> plan(void* handle, const std::string& gpu, const DnnPool& d);
  std::unique_ptr<DnnPlan> plan(void* handle, const std::string& gpu, const DnnAttention& d);
  // For a GPU that need not be there, described by JSON as cuDNN serializes device properties. For
  // the tests; Description: as of plan(). check: throws NoAlgorithm where there is no plan, without
  // compiling its kernels. plan: also compiles them, unless they are part of cuDNN, and loads them
  // by the driver. restore: from what such a plan saved. REQUIRES: libcuda.so.1 or its stand-in is
  // loaded, except for convolutions.
  template <class Description>
  void check_without_device(const std::string& properties, const Description& d);
  template <class Description>
  std::unique_ptr<DnnPlan> plan_without_device(const std::string& properties, const Description& d);
  template <class Description>
  std::unique_ptr<DnnPlan> restore_without_device(const std::string& properties,
                                                  const Description& d, const std::string& saved);

 private:
  Dnn();
  template <class Description>
  std::unique_ptr<DnnPlan> known_or_made(void* handle, const std::string& gpu,
                                         const Description& d);
  LibraryReport report_;
  PlanCache cache_{PlanCache::folder_of_user()};
  std::string libraries_;  // all that plans depend on, but for the GPU
};

}  // namespace dpt::cuda
