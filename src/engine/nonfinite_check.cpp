#include "engine/nonfinite_check.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/half.h"
#include "graph/operator.h"

namespace dpt {

bool all_finite(const TensorView& v) {
  if (v.desc.dtype == DType::f32)
    return std::ranges::all_of(v.as<const float>(), [](float x) { return std::isfinite(x); });
  if (v.desc.dtype == DType::f64)
    return std::ranges::all_of(v.as<const double>(), [](double x) { return std::isfinite(x); });
  if (is_half(v.desc.dtype)) {
    const bool bf16 = v.desc.dtype == DType::bf16;
    return std::ranges::all_of(v.as<const uint16_t>(), [&](uint16_t x) {
      return std::isfinite(bf16 ? from_bf16(x) : from_f16(x));
    });
  }
  return true;
}

namespace {

// The first of the table's rows numbered in `rows` that has a non-finite value, or -1.
int64_t first_not_finite(const Table& table, std::span<const uint32_t> rows) {
  if (!table.data) return -1;
  const TensorDesc row{table.desc.dtype, table.sample()};
  const size_t step = static_cast<size_t>(table.step()) * size_of(row.dtype);
  const auto finite = [&](uint32_t r) {
    return all_finite({row, const_cast<std::byte*>(table.data.get() + r * step)});
  };
  const auto at = std::ranges::find_if_not(rows, finite);
  return at == rows.end() ? -1 : static_cast<int64_t>(*at);
}

}  // namespace

void check_samples_finite(const Dataset& data, std::span<const uint32_t> samples,
                          NonFinite& found) {
  if (found.input < 0) found.input = first_not_finite(data.inputs, samples);
  if (found.target < 0) found.target = first_not_finite(data.targets, samples);
}

NonFinite first_non_finite(const Buffers& buffers, int shards) {
  NonFinite first;
  for (int s = 0; s < shards; ++s) {
    const NonFinite& t = buffers.non_finite(s);
    if (t.parameter >= 0) first.parameter = t.parameter;
    if (first.input < 0) first.input = t.input;
    if (first.target < 0) first.target = t.target;
    if (t.instruction >= 0 && (first.instruction < 0 || t.instruction < first.instruction))
      first.instruction = t.instruction;
  }
  return first;
}

NonFiniteReport describe_non_finite(const RunSettings& settings, const CompiledModel& model,
                                    const NonFinite& found) {
  constexpr std::string_view kRemedy =
      "a lower learning rate, clip_grad_norm, or other data may help";
  if (found.parameter >= 0) {
    const Graph& graph = model.graph;
    const Value& v = graph[graph.parameters[static_cast<size_t>(found.parameter)]];
    return {fmt::format("the values of parameter '{}' were not finite before the step", v.name),
            kRemedy};
  }
  const auto sample = [](int64_t number, std::string_view what) -> NonFiniteReport {
    return {fmt::format("sample {} of the training set (counted from 0) has {} that is not finite",
                        number, what),
            "fix or remove that sample"};
  };
  if (found.input >= 0) return sample(found.input, "an input");
  if (found.instruction < 0) {
    if (found.target >= 0) return sample(found.target, "a target");
    const LossType& loss = *settings.loss;
    if (!loss.needs.empty())
      return {fmt::format("the model's outputs are finite, but outside the range that {} accepts",
                          loss.name),
              loss.needs};
    return {"every layer's output is finite, so the non-finite value comes from the loss itself",
            kRemedy};
  }
  const Program& program = model.programs.begin()->second;
  const Instruction& i = program.forward[static_cast<size_t>(found.instruction % kForward)];
  const GraphNode& n = program.graph.nodes[i.node];
  return {fmt::format("the output of layer '{}' ({}) is the first that is not finite", n.layer,
                      label_of(n)),
          kRemedy};
}

}  // namespace dpt
