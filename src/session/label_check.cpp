#include "session/label_check.h"

#include <fmt/format.h>

#include "base/count.h"
#include "data/tables.h"

namespace dpt {

std::string misfitting_labels(const RunSettings& settings, const CompiledModel& model,
                              const Dataset& dataset, std::string_view set,
                              std::span<const uint32_t> rows) {
  const Spec& spec = settings.spec;
  const Table& targets = dataset.targets;
  if (settings.loss->output_problem == nullptr || !dataset.made ||
      !spec.data.target_transforms.empty() || targets.desc.dtype != DType::i32)
    return "";
  const Shape output = model.graph[model.graph.output].desc.shape.tail(1);
  const std::span<const int32_t> all = values_of<int32_t>(targets);
  const auto width = static_cast<size_t>(targets.sample().elements());
  std::string first;
  int64_t others = -1;
  const int64_t count = rows.empty() ? dataset.size() : std::ssize(rows);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t sample = rows.empty() ? i : rows[static_cast<size_t>(i)];
    const std::string problem = settings.loss->output_problem(
        spec.loss.settings, all.subspan(static_cast<size_t>(sample * targets.step()), width),
        output);
    if (problem.empty()) continue;
    ++others;
    if (first.empty())
      first = fmt::format("sample {} of the {} set (counted from 0) {}", sample, set, problem);
  }
  if (others <= 0) return first;
  return fmt::format("{}. {} of this set {} not fit either", first, counted(others, "other sample"),
                     others == 1 ? "does" : "do");
}

}  // namespace dpt
