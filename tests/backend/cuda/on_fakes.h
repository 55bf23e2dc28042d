// One operator, run by its own kernel on the fake GPU.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cuda/conformance.h"
#include "backend/cuda/implementations/kernels.h"
#include "backend/cuda/on_device.h"
#include "sanitizers.h"

namespace dpt::cuda {

struct OnFakes {
  std::vector<HostTensor> out;
  std::string calls;  // a line each
};

// Runs the own kernel in three orders of threads. Throws if their bits differ.
inline OnFakes run_on_fakes(const KernelQuery& q, std::vector<HostTensor>& in) {
  OnFakes run;
  for (const KernelType& row : cuda_kernels()) {
    if (row.op != q.op || row.name != "own") continue;
    for (const ThreadOrder order :
         {ThreadOrder::forward, ThreadOrder::reverse, ThreadOrder::shuffled}) {
      if (kSanitized && order != ThreadOrder::shuffled) continue;
      FakeApi api({.order = order, .strict = true});
      std::vector<HostTensor> again = run_on(api, row, q, in, {});
      if (!run.out.empty()) same_bits(q, run.out, again);
      run.out = std::move(again);
      run.calls.clear();
      for (const std::string& call : api.take_calls()) run.calls += call + "\n";
    }
  }
  return run;
}

}  // namespace dpt::cuda
