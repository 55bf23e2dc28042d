// What a spec can name under `loss:`. One file in layers/losses/ holds one LossType.
//
// Note [divisor]: a loss node gives this shard's sum of terms over a divisor that is the same for
// all shards of the global batch. So a plain sum over shards is the mean, in every mode, however
// uneven the shards are, and no other place divides.
#pragma once

#include <any>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"
#include "spec/nameable.h"

namespace dpt {

// What a loss divides by, for a global batch of N samples: 1; N; N times the places of a sample
// that have C scores each, which is one for [N, C]; N times its elements; what target_weight sums
// to.
enum class Divisor { one, samples, places, elements, targets };

struct LossType : Nameable {
  // d[1] is the divisor value; gives f64[1], this shard's sum of terms / divisor.
  ValueId (*build)(const std::any& settings, GraphBuilder& g, ValueId output, ValueId target,
                   ValueId divisor);
  Divisor (*divisor)(const std::any& settings);
  // Divisor::targets only: f64[1], the sum over this shard of the weights of its targets.
  ValueId (*target_weight)(const std::any& settings, GraphBuilder& g, ValueId target);
  // Divisor::targets only: the class whose targets count nothing.
  int64_t (*ignore_index)(const std::any& settings) = nullptr;
  bool classes = false;  // targets are class indices i32[N, ...]: accuracy has a meaning
  // Where `classes`: which extent of an output [N, ...] has a score for each class.
  int (*class_dim)(const std::any& settings, const Shape& output) = nullptr;
  bool unit_targets = false;  // every target must be in [0, 1], as PyTorch asks
  // What it asks of the model's outputs, and what to do: told where it is not finite though they
  // are. Empty: nothing.
  std::string_view needs{};
  // As an expression of PyTorch: "nn.CrossEntropyLoss(label_smoothing=0.1)".
  std::string (*torch)(const std::any& settings);
};

std::span<const LossType> loss_table();  // generated from layers/losses/meson.build
std::vector<const Nameable*> loss_words();

}  // namespace dpt
