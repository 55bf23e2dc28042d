#include "engine/evaluation.h"

#include <algorithm>

#include "comm/tree.h"
#include "engine/step_numbers.h"

namespace dpt {
namespace {

// The sums over all shards, in the fixed tree. of(shard): `size` numbers of one shard.
template <class Of>
std::vector<double> sum_shards(int shards, size_t size, Of of) {
  std::vector<std::vector<double>> values;
  std::vector<double*> parts;
  for (int s = 0; s < shards; ++s) {
    const std::span<const double> own = of(s);
    values.emplace_back(own.begin(), own.end());
  }
  for (auto& v : values) parts.push_back(v.data());
  sum_tree(std::span<double* const>(parts), 0, size);
  return values[0];
}

double total(const Session& s, const Buffers& buffers, double ShardResult::*field) {
  return sum_shards(s.devices.topology.shards, 1, [&](int shard) {
    return std::span<const double>(&(buffers.evaluation(shard).*field), 1);
  })[0];
}

}  // namespace

std::optional<double> Evaluation::find(std::string_view metric) const {
  if (metric == "loss") return loss;
  if (metric == "accuracy") return accuracy >= 0 ? std::optional(accuracy) : std::nullopt;
  for (const std::vector<NamedValue>* values : {&metrics, &by_label})
    if (const auto found = std::ranges::find(*values, metric, &NamedValue::name);
        found != values->end())
      return found->value;
  return std::nullopt;
}

void clear_evaluation(const Buffers& buffers, int shard) {
  buffers.evaluation(shard) = {};
  std::ranges::fill(buffers.metrics(shard), 0.0);
}

void add_evaluation(const CompiledModel& model, ShardResult& to, const ShardResult& found,
                    int64_t samples) {
  to.loss += found.loss;
  to.weight += model.divisor == Divisor::targets ? found.weight : natural_divisor(model, samples);
  to.correct += found.correct;
}

Evaluation end_evaluation(const Session& s, const Buffers& buffers,
                          const std::function<void()>& barrier) {
  barrier();
  Evaluation out = sum_evaluation(s, buffers);
  barrier();
  return out;
}

Evaluation sum_evaluation(const Session& s, const Buffers& buffers) {
  Evaluation out;
  out.loss = total(s, buffers, &ShardResult::loss);
  if (s.model.divisor != Divisor::one) out.loss /= total(s, buffers, &ShardResult::weight);
  std::vector<double> sums;
  if (s.metrics.size() > 0)
    sums = sum_shards(s.devices.topology.shards, s.metrics.summed(),
                      [&](int shard) { return buffers.metrics(shard).first(s.metrics.summed()); });
  std::vector<std::span<const double>> shards;
  for (int shard = 0; shard < s.devices.topology.shards; ++shard)
    shards.emplace_back(buffers.metrics(shard));
  out.metrics = s.metrics.values(sums, out.loss, shards);
  out.by_label = s.metrics.by_label(sums, shards);
  if (s.settings.loss->classes && s.metrics.has("accuracy"))
    out.accuracy = total(s, buffers, &ShardResult::correct) / s.data.counted_test_targets();
  // The accuracy of labels is among the values.
  const auto accuracy = std::ranges::find(out.metrics, "accuracy", &NamedValue::name);
  if (accuracy != out.metrics.end()) {
    out.accuracy = accuracy->value;
    out.metrics.erase(accuracy);
  }
  out.confusion_matrix = s.metrics.confusion_matrix(sums);
  return out;
}

}  // namespace dpt
