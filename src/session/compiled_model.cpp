#include "session/compiled_model.h"

#include <algorithm>

namespace dpt {

int64_t CompiledModel::parameters() const {
  int64_t n = 0;
  for (size_t i = 0; i < graph.parameters.size(); ++i)
    if (graph.gradients[i] != kNoValue) n += graph[graph.parameters[i]].desc.shape.elements();
  return n;
}

int64_t CompiledModel::same_slot_before(int stage, int64_t batch) const {
  const int count = slots[static_cast<size_t>(stage)];
  const auto slot = [&](int64_t b) { return b % slot_count % count; };
  int64_t before = batch - 1;
  while (before >= 0 && slot(before) != slot(batch)) --before;
  return before;
}

int64_t CompiledModel::test_parts_until(int stage, int64_t batch) const {
  const auto& devices = graph.stage_device;
  const int on = devices[static_cast<size_t>(stage)];
  return batch * std::ranges::count(devices, on) +
         std::count(devices.begin(), devices.begin() + stage + 1, on);
}

}  // namespace dpt
