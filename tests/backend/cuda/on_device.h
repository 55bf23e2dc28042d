// One kernel of the list for GPUs, run on a GPU or the fake one.
#pragma once

#include <cstring>
#include <vector>

#include "backend/cuda/context.h"
#include "backend/cuda/fake_api.h"
#include "graph/interpret.h"

namespace dpt::cuda {

inline std::vector<HostTensor> run_on(DeviceApi& api, const KernelType& row, const KernelQuery& q,
                                      std::vector<HostTensor>& in, const StepContext& step) {
  std::vector<HostTensor> out;
  for (const TensorDesc& d : q.out) out.emplace_back(d);
  const auto stream = api.make_stream();
  std::vector<Memory> memory, pinned;
  std::vector<TensorView> views;
  const auto upload = [&](std::byte* to, const void* from, size_t bytes) {
    pinned.emplace_back(api, MemoryKind::pinned, std::max<size_t>(1, bytes));
    std::memcpy(pinned.back().data(), from, bytes);
    if (bytes > 0) stream->copy(to, pinned.back().data(), bytes);
  };
  const auto place = [&](const TensorDesc& d) {
    memory.emplace_back(api, MemoryKind::device, std::max<size_t>(1, d.bytes()));
    views.push_back({d, memory.back().data()});
    return memory.back().data();
  };
  for (HostTensor& t : in) upload(place(t.desc), t.view().data, t.desc.bytes());
  for (const TensorDesc& d : q.out) place(d);
  const Memory state(api, MemoryKind::device, sizeof(StepState));
  const StepState values{.seed = step.seed,
                         .step = step.step,
                         .first_sample = step.first_sample,
                         .last_chunk = step.last_chunk};
  upload(state.data(), &values, sizeof values);
  DeviceContext context(api, *stream, reinterpret_cast<StepState*>(state.data()));
  const DeviceContext::Use use(context);
  const auto kernel = row.prepare(q);
  const Memory workspace(api, MemoryKind::device, context.workspace_bytes());
  context.workspace = workspace.data();
  const std::span all(views);
  kernel->run({all.first(in.size()), all.subspan(in.size()), &step});
  const size_t uploads = pinned.size();
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t bytes = out[i].desc.bytes();
    pinned.emplace_back(api, MemoryKind::pinned, std::max<size_t>(1, bytes));
    if (bytes > 0) stream->copy(pinned.back().data(), views[in.size() + i].data, bytes);
  }
  stream->synchronise();
  for (size_t i = 0; i < out.size(); ++i)
    std::memcpy(out[i].view().data, pinned[uploads + i].data(), out[i].desc.bytes());
  return out;
}

}  // namespace dpt::cuda
