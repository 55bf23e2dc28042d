// The executor's other passes: over the test set, and in search of a number that is not finite.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "comm/tree.h"
#include "graph/operator.h"
#include "train/executor.h"

namespace dpt {

Evaluation Executor::evaluate() {
  const StepCutter& batches = *session_.test_batches;
  std::vector<uint32_t> order(static_cast<size_t>(session_.test->size()));
  std::iota(order.begin(), order.end(), 0U);
  bool classes = false;
  for (int s : own_) buffers_.evaluation(s) = {};
  StepRows rows;
  for (int64_t b = 0; b < batches.steps(); ++b) {
    batches.step(b, rows);
    for (int s : own_) {
      const Rows mine = rows.micro[0][static_cast<size_t>(s)].rows;
      if (mine.count() == 0) continue;
      Binding& bound = binding(s, mine.count(), kTest);
      const auto samples = std::span<const uint32_t>(order).subspan(
          static_cast<size_t>(mine.begin), static_cast<size_t>(mine.count()));
      feed_inputs(*session_.test_feeder, samples, bound);
      feed_targets(*session_.test_feeder, samples, bound);
      bound.set_divisor(1);
      bound.run(Part::prologue);
      bound.run(Part::forward);
      bound.run(Part::loss);
      ShardResult& r = buffers_.evaluation(s);
      r.loss += bound.loss();
      r.weight += session_.divisor == Divisor::targets ? bound.target_weight()
                                                       : natural_divisor(mine.count());
      if (bound.has_correct()) r.correct += bound.correct();
    }
  }
  for (const auto& [n, program] : session_.test_programs)
    classes = classes || program.graph.correct != kNoValue;
  team_.meet(worker_);
  const auto total = [&](double ShardResult::*what) {
    std::vector<double> values(static_cast<size_t>(session_.who.shards));
    std::vector<double*> parts(values.size());
    for (size_t s = 0; s < values.size(); ++s) {
      values[s] = buffers_.evaluation(static_cast<int>(s)).*what;
      parts[s] = &values[s];
    }
    sum_tree(std::span<double* const>(parts), 0, 1);
    return values[0];
  };
  Evaluation out;
  out.loss = total(&ShardResult::loss);
  if (session_.divisor != Divisor::one) out.loss /= total(&ShardResult::weight);
  if (classes)
    out.accuracy = total(&ShardResult::correct) /
                   static_cast<double>(session_.test->size() - session_.test->ignored);
  team_.meet(worker_);  // before anybody begins the next evaluation
  return out;
}

Finding Executor::find_trouble(const StepInput& input) {
  constexpr std::string_view kRemedy =
      "a lower learning rate, clip_grad_norm, or other data may help";
  const Graph& graph = session_.graph;
  constexpr int64_t kForward = 1000000;  // an instruction's number: by micro-batch, then in order
  for (int s : own_) {
    Trouble& found = buffers_.trouble(s);
    found = {};
    for (size_t p = 0; p < graph.parameters.size() && found.parameter < 0; ++p) {
      const float* w = buffers_.weights() + session_.layout.offset[p];
      const int64_t n = graph[graph.parameters[p]].desc.shape.elements();
      if (!std::all_of(w, w + n, [](float x) { return std::isfinite(x); }))
        found.parameter = static_cast<int64_t>(p);
    }
    for (size_t m = 0; m < input.rows->micro.size() && found.instruction < 0; ++m) {
      const ShardRows& rows = input.rows->micro[m][static_cast<size_t>(s)];
      if (rows.rows.count() == 0) continue;
      Binding& b = binding(s, rows.rows.count(), kTrain);
      feed(b, rows, input);
      const int64_t at = b.run_until_not_finite(Part::forward);
      if (at >= 0) found.instruction = static_cast<int64_t>(m) * kForward + at;
    }
  }
  team_.meet(worker_);
  Trouble first;
  for (int s = 0; s < session_.who.shards; ++s) {
    const Trouble& t = buffers_.trouble(s);
    if (t.parameter >= 0) first.parameter = t.parameter;
    if (t.instruction >= 0 && (first.instruction < 0 || t.instruction < first.instruction))
      first.instruction = t.instruction;
  }
  team_.meet(worker_);
  if (first.parameter >= 0) {
    const Value& v = graph[graph.parameters[static_cast<size_t>(first.parameter)]];
    return {fmt::format("the values of parameter '{}' were not finite before the step", v.name),
            kRemedy};
  }
  if (first.instruction < 0) {
    const LossType& loss = *session_.loss;
    if (!loss.needs.empty())
      return {fmt::format("the model's outputs are finite, but {} can't take them", loss.name),
              loss.needs};
    return {"every layer's output is finite, so it arose in the loss itself", kRemedy};
  }
  const Instruction& i =
      session_.programs.begin()->second.forward[static_cast<size_t>(first.instruction % kForward)];
  const GraphNode& n = session_.programs.begin()->second.graph.nodes[i.node];
  return {fmt::format("the output of layer '{}' ({}) is the first that is not finite", n.layer,
                      n.op->name),
          kRemedy};
}

}  // namespace dpt
