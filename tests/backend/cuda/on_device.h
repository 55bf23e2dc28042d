// One kernel of the list for GPUs, run on a GPU or the fake one.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/fake_api.h"
#include "backend/cuda/interface/context.h"
#include "graph/interpret.h"

namespace dpt::cuda {

// A kernel with its inputs on the GPU, prepared once and run as often as wanted. A GPU's libraries
// take up to half a second to prepare an operation.
class OnDevice {
 public:
  OnDevice(DeviceApi& api, const KernelType& row, const KernelQuery& q, std::vector<HostTensor>& in,
           const StepContext& step, bool tf32 = false,
           size_t attention_workspace = kAttentionWorkspace)
      : api_(api),
        step_(step),
        stream_(api.make_stream()),
        state_(api, MemoryKind::device, sizeof(StepState)),
        context_(api, *stream_, reinterpret_cast<StepState*>(state_.data())),
        inputs_(in.size()) {
    for (HostTensor& t : in) upload(place(t.desc), t.view().data, t.desc.bytes());
    for (const TensorDesc& d : q.out) place(d);
    const StepState values{.seed = step.seed,
                           .step = step.step,
                           .first_sample = step.first_sample,
                           .last_chunk = step.last_chunk};
    upload(state_.data(), &values, sizeof values);
    context_.tf32 = tf32;
    context_.attention_workspace = attention_workspace;
    const DeviceContext::Use use(context_);
    kernel_ = row.prepare(q);
    workspace_ = DeviceBuffer(api, MemoryKind::device, context_.workspace_bytes());
    context_.workspace = workspace_.data();
    stream_->synchronise();
    pinned_.clear();
  }

  // Results of an earlier run are overwritten first.
  std::vector<HostTensor> run() {
    const std::span all(views_);
    const auto made = all.subspan(inputs_);
    for (const TensorView& v : made)
      if (v.desc.bytes() > 0) stream_->fill(v.data, 0xff, v.desc.bytes());
    kernel_->run({all.first(inputs_), made, &step_});
    std::vector<DeviceBuffer> pinned;
    for (const TensorView& v : made) {
      pinned.emplace_back(api_, MemoryKind::pinned, std::max<size_t>(1, v.desc.bytes()));
      if (v.desc.bytes() > 0) stream_->copy(pinned.back().data(), v.data, v.desc.bytes());
    }
    stream_->synchronise();
    std::vector<HostTensor> out;
    for (size_t i = 0; i < made.size(); ++i) {
      out.emplace_back(made[i].desc);
      std::memcpy(out[i].view().data, pinned[i].data(), made[i].desc.bytes());
    }
    return out;
  }

  // Why own kernels run in a library's place; empty: they do not.
  std::vector<std::string> fallbacks() const { return context_.not_as_planned(); }

 private:
  void upload(std::byte* to, const void* from, size_t bytes) {
    pinned_.emplace_back(api_, MemoryKind::pinned, std::max<size_t>(1, bytes));
    std::memcpy(pinned_.back().data(), from, bytes);
    if (bytes > 0) stream_->copy(to, pinned_.back().data(), bytes);
  }
  std::byte* place(const TensorDesc& d) {
    memory_.emplace_back(api_, MemoryKind::device, std::max<size_t>(1, d.bytes()));
    views_.push_back({d, memory_.back().data()});
    return memory_.back().data();
  }

  DeviceApi& api_;
  StepContext step_;
  std::unique_ptr<Stream> stream_;
  std::vector<DeviceBuffer> memory_, pinned_;
  DeviceBuffer state_, workspace_;
  std::vector<TensorView> views_;
  DeviceContext context_;
  size_t inputs_;
  std::unique_ptr<Kernel> kernel_;
};

inline std::vector<HostTensor> run_on(DeviceApi& api, const KernelType& row, const KernelQuery& q,
                                      std::vector<HostTensor>& in, const StepContext& step) {
  return OnDevice(api, row, q, in, step).run();
}

}  // namespace dpt::cuda
