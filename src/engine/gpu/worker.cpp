#include "engine/gpu/worker.h"

#include "backend/cuda/interface/launch.h"
#include "backend/cuda/kernels/gather.h"
#include "base/fail.h"

namespace dpt {

void begin_batch(const GpuWorker& worker, const GpuBinding* b, const StepRows& rows, size_t micro,
                 const cuda::StepEntry* entry, bool divides) {
  const auto address = [&](ValueId Graph::*value) {
    const ValueId v = b ? b->program().graph.*value : kNoValue;
    return v == kNoValue ? nullptr : reinterpret_cast<float*>(b->view(v).data);
  };
  const ShardRows& mine = worker.own(rows.micro[micro]);
  cuda::launch(worker.stream(),
               cuda::BeginBatch{.entry = entry,
                                .state = worker.context.state,
                                .offset = mine.rows.begin - worker.own(rows.micro[0]).rows.begin,
                                .first_sample = mine.first_sample,
                                .last_chunk = worker.session.batches.last_chunk(rows, micro),
                                .divides = divides,
                                .divisor = address(&Graph::divisor),
                                .scale = address(&Graph::scale)},
               1);
}

void check_data(int32_t bad) {
  if (bad != 0)
    fail(Fault::data,
         "a class or token in this batch is out of the model's range; run with `device: cpu` to "
         "find the sample");
}

}  // namespace dpt
