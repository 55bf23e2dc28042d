// What one GPU needs to run batches: state, bindings, and the input of batches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "base/units.h"
#include "engine/gpu/batch_input.h"
#include "engine/gpu/binding_table.h"
#include "engine/gpu/one_gpu.h"

namespace dpt {

// Uploads the weights of one.buffers and the state of a run that begins.
class GpuRunner {
 public:
  // resident: the GPU has the data set in its memory; else the host makes batches.
  explicit GpuRunner(OneGpu& one, bool resident = true)
      : bindings(one.worker, one.update, nullptr), one_(one), resident_(resident) {
    const cuda::DeviceBuffer host(one.api, cuda::MemoryKind::pinned, sizeof(cuda::StepState));
    new (host.data()) cuda::StepState{.loss_scale = 1};
    one.stream->copy(one.context.state, host.data(), sizeof(cuda::StepState));
    one.stream->synchronise();
    one.update.upload(one.buffers);
    const SessionData& data = one.session->data;
    train = input_of(*data.loader, static_cast<size_t>(one.session->batches.train->accumulate()));
    order.resize(static_cast<size_t>(data.train_samples()));
    std::iota(order.begin(), order.end(), 0U);
    train->begin(order, 0);
    if (data.test) test = input_of(*data.test_loader, 1);
  }

  // A step of the epoch, with samples in their stored order.
  struct Step {
    StepRows rows;
    StepInput input;
  };
  std::unique_ptr<Step> step(int64_t batch) const {
    auto out = std::make_unique<Step>();
    one_.session->batches.train->step(batch, out->rows);
    out->input = {.rows = &out->rows, .order = order, .batch = batch};
    return out;
  }

  GpuBindingTable bindings;
  std::vector<uint32_t> order;
  std::unique_ptr<BatchInput> train, test;

 private:
  std::unique_ptr<BatchInput> input_of(const BatchLoader& loader, size_t micro_batches) {
    size_t room = kGiB;
    const auto bytes = [&](ValueId Graph::*value) {
      size_t most = 0;
      for (const auto* programs :
           {&one_.session->model.programs, &one_.session->model.test_programs})
        for (const auto& [rows, p] : *programs)
          most = std::max(most, p.graph[p.graph.*value].desc.bytes());
      return most;
    };
    return make_batch_input({.loader = loader,
                             .context = one_.context,
                             .micro_batches = micro_batches,
                             .input_bytes = bytes(&Graph::input),
                             .target_bytes = bytes(&Graph::target),
                             .team = one_.team,
                             .wait_for = wait_},
                            resident_, room);
  }

  OneGpu& one_;
  bool resident_;
  WaitForGpu wait_ = [](cuda::Event& event) { event.wait(); };
};

}  // namespace dpt
