#include "engine/gpu/batch_input.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "engine/gpu/resident_input.h"
#include "engine/gpu/staged_input.h"

namespace dpt {

size_t order_bytes(const BatchLoader& loader) {
  const size_t numbers = loader.draws_on_device() ? 2 : 1;
  return numbers * static_cast<size_t>(loader.size()) * sizeof(uint32_t);
}

size_t resident_bytes(const BatchLoader& loader) {
  const auto bytes = [](const BatchLoader::Stored& s) {
    return s.bytes.size() + (s.values.size() + s.colours.size()) * sizeof(float);
  };
  const size_t targets = loader.target_is_input() ? 0 : bytes(loader.stored_targets());
  return bytes(loader.stored_inputs()) + targets + order_bytes(loader);
}

bool fits_on_gpu(const BatchLoader& loader, size_t free_bytes) {
  return loader.not_stored().empty() && resident_bytes(loader) <= free_bytes;
}

std::unique_ptr<BatchInput> make_batch_input(const BatchInputRequest& request, bool resident,
                                             size_t& free_bytes) {
  if (!resident) return std::make_unique<StagedInput>(request);
  free_bytes -= resident_bytes(request.loader);
  return std::make_unique<ResidentInput>(request);
}

size_t staged_bytes(const SessionData& data, const SessionBatches& batches,
                    const CompiledModel& model, int device) {
  if (data.loader->not_stored().empty()) return 0;
  const auto largest = [&](int stage, ValueId Graph::*value) {
    size_t out = 0;
    if (model.graph.stage_device[static_cast<size_t>(stage)] != device) return out;
    for (const auto* programs : {&model.programs, &model.test_programs})
      for (const auto& [rows, p] : *programs)
        out = std::max(out, p.graph[p.graph.*value].desc.bytes());
    return cuda::aligned(out);
  };
  return static_cast<size_t>(batches.train->accumulate()) *
         (largest(0, &Graph::input) + largest(model.graph.stages() - 1, &Graph::target));
}

std::string batch_input_text(const BatchLoader& loader) {
  const std::string why_not = loader.not_stored();
  if (why_not.empty())
    return fmt::format(
        "{} on the GPU, which holds the data set ({:.2f} MiB) if its memory is large enough",
        loader.stored_inputs().changes.count > 0 ? "drawn" : "gathered",
        static_cast<double>(resident_bytes(loader)) / kMiB);
  return fmt::format(
      "made by the host, since {}, and copied while the GPU computes the previous batch", why_not);
}

}  // namespace dpt
