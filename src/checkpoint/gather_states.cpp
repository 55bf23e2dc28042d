#include "checkpoint/gather_states.h"

#include <algorithm>

namespace dpt {

std::vector<float> gather_states(const RunSettings& settings, const CompiledModel& model,
                                 const Buffers& buffers, Team team, int worker,
                                 StepExecutor& executor) {
  const size_t elements = model.layout.trainable;
  const std::span<float> window = buffers.window();
  std::vector<float> out(worker == 0 ? static_cast<size_t>(settings.states()) * elements : 0);
  for (int i = 0; i < settings.states(); ++i)
    for (size_t at = 0; at < elements; at += window.size()) {
      const size_t end = std::min(elements, at + window.size());
      executor.own_states([&](int state, size_t begin, std::span<float> values) {
        const size_t first = std::max(begin, at), last = std::min(begin + values.size(), end);
        if (state == i && first < last)
          std::ranges::copy(values.subspan(first - begin, last - first),
                            window.begin() + static_cast<std::ptrdiff_t>(first - at));
      });
      team.barrier(worker);
      if (worker == 0)
        std::copy_n(window.data(), end - at, out.data() + static_cast<size_t>(i) * elements + at);
      team.barrier(worker);
    }
  return out;
}

void take_states(const CompiledModel& model, std::span<const float> all, StepExecutor& executor) {
  executor.own_states([&](int state, size_t begin, std::span<float> values) {
    const size_t from = static_cast<size_t>(state) * model.layout.trainable + begin;
    if (from >= all.size()) return;  // averages, which start from the weights
    std::ranges::copy(all.subspan(from, values.size()), values.begin());
  });
}

}  // namespace dpt
