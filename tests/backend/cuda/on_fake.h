// One kernel of the list for GPUs, run on the fake one.
#pragma once

#include <cstring>
#include <vector>

#include "backend/cuda/context.h"
#include "backend/cuda/fake_api.h"
#include "graph/interpret.h"

namespace dpt::cuda {

inline std::vector<HostTensor> run_on_fake(const KernelType& row, const KernelQuery& q,
                                           std::vector<HostTensor>& in, const StepContext& step,
                                           ThreadOrder order) {
  FakeApi api({.order = order, .strict = true});
  std::vector<HostTensor> out;
  for (const TensorDesc& d : q.out) out.emplace_back(d);
  {
    const auto stream = api.make_stream();
    // A fake's memory is the host's.
    std::vector<Memory> memory;
    std::vector<TensorView> views;
    const auto place = [&](const TensorDesc& d) {
      memory.emplace_back(api, MemoryKind::device, std::max<size_t>(1, d.bytes()));
      views.push_back({d, memory.back().data()});
      return memory.back().data();
    };
    for (HostTensor& t : in) std::memcpy(place(t.desc), t.view().data, t.desc.bytes());
    for (const TensorDesc& d : q.out) place(d);
    const Memory state(api, MemoryKind::device, sizeof(StepState));
    *reinterpret_cast<StepState*>(state.data()) = {
        .seed = step.seed, .step = step.step, .first_sample = step.first_sample};
    DeviceContext context(api, *stream, reinterpret_cast<StepState*>(state.data()));
    const DeviceContext::Use use(context);
    const auto kernel = row.prepare(q);
    const Memory workspace(api, MemoryKind::device, context.workspace_bytes());
    context.workspace = workspace.data();
    const std::span all(views);
    kernel->run({all.first(in.size()), all.subspan(in.size()), &step});
    stream->synchronise();
    for (size_t i = 0; i < out.size(); ++i)
      std::memcpy(out[i].view().data, views[in.size() + i].data, out[i].desc.bytes());
  }
  return out;
}

}  // namespace dpt::cuda
