#include "engine/gpu/captured_graphs.h"

namespace dpt {

StepShape shape_of(const StepRows& rows) {
  StepShape out;
  for (const auto& micro : rows.micro)
    for (size_t s = 0; s < micro.size(); ++s)
      out.insert(out.end(),
                 {micro[s].rows.count(), micro[s].rows.begin - rows.micro[0][s].rows.begin,
                  micro[s].first_sample});
  return out;
}

cuda::CapturedGraph& CapturedGraphs::get(const StepShape& shape, size_t slot, size_t count,
                                         const std::function<void(size_t step)>& enqueue) {
  StepShape key = shape;
  key.insert(key.end(), {static_cast<int64_t>(slot), static_cast<int64_t>(count)});
  std::unique_ptr<cuda::CapturedGraph>& graph = graphs_[std::move(key)];
  if (graph) return *graph;
  stream_.begin_capture();
  try {
    for (size_t i = 0; i < count; ++i) enqueue(i);
  } catch (...) {
    stream_.cancel_capture();
    throw;
  }
  graph = stream_.end_capture();
  return *graph;
}

}  // namespace dpt
