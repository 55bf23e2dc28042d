#include "train/trouble.h"

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

Trouble first_trouble(const Buffers& buffers, int shards) {
  Trouble first;
  for (int s = 0; s < shards; ++s) {
    const Trouble& t = buffers.trouble(s);
    if (t.parameter >= 0) first.parameter = t.parameter;
    if (t.instruction >= 0 && (first.instruction < 0 || t.instruction < first.instruction))
      first.instruction = t.instruction;
  }
  return first;
}

Finding describe_trouble(const Session& session, const Trouble& found) {
  constexpr std::string_view kRemedy =
      "a lower learning rate, clip_grad_norm, or other data may help";
  if (found.parameter >= 0) {
    const Graph& graph = session.graph;
    const Value& v = graph[graph.parameters[static_cast<size_t>(found.parameter)]];
    return {fmt::format("the values of parameter '{}' were not finite before the step", v.name),
            kRemedy};
  }
  if (found.instruction < 0) {
    const LossType& loss = *session.loss;
    if (!loss.needs.empty())
      return {fmt::format("the model's outputs are finite, but {} can't take them", loss.name),
              loss.needs};
    return {"every layer's output is finite, so it arose in the loss itself", kRemedy};
  }
  const Program& program = session.programs.begin()->second;
  const Instruction& i = program.forward[static_cast<size_t>(found.instruction % kForward)];
  const GraphNode& n = program.graph.nodes[i.node];
  return {fmt::format("the output of layer '{}' ({}) is the first that is not finite", n.layer,
                      n.op->name),
          kRemedy};
}

}  // namespace dpt
