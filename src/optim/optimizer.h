// The registry of `optimizer:`. Each file in optim/optimizers/ holds one OptimizerType.
//
// Weights, gradients and states lie in flat buffers of one layout, so an update is one pass over a
// range of elements. Each worker updates its own range.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/registry_entry.h"
#include "spec/spec.h"

namespace dpt {

struct OptimizerStep;  // graph/optimizer_step.h

// The momentum or beta1 of step t = 1, 2, ... that a schedule sets, for each step up to the present
// one. Empty: the schedule sets none, and the optimizer's own counts.
using Momenta = std::function<double(int64_t t)>;
inline double momentum_of(const Momenta& momenta, int64_t t, double own) {
  return momenta ? momenta(t) : own;
}

struct OptimizerType : RegistryEntry {
  // PyTorch's names of the optimizer's states, as used in checkpoints: {"exp_avg", "exp_avg_sq"}. A
  // state is a flat f32 buffer; its index is the argument position in the formula, and an empty
  // name means that there is no such buffer. cycles_momentum: the schedule sets the momentum, so
  // its state is needed even if the settings say 0.
  std::vector<std::string> (*states)(const std::any& settings, bool cycles_momentum);
  // Initial value of all states: 0, or adagrad's initial_accumulator_value.
  double (*initial_state)(const std::any& settings);
  double (*lr)(const std::any& settings);  // the base learning rate, which schedules scale
  // The weight decay; empty: this optimizer has none.
  std::optional<double> (*weight_decay)(const std::any& settings);
  // The settings with another learning rate and, unless empty, another weight decay. REQUIRES: no
  // weight decay for an optimizer that has none.
  std::any (*with)(const std::any& settings, double lr, std::optional<double> weight_decay);
  // The scalars of step t = 1, 2, ... at learning rate lr; see uses_previous_lr. momenta: replace
  // the momentum or beta1 of the settings. Does not allocate.
  OptimizerStep (*step)(const std::any& settings, int64_t t, double lr, const Momenta& momenta);
  // For an optimizer that updates whole matrices: its settings for parameters that are none, or
  // that match `elementwise` of the settings. Null: every element is updated alone.
  std::any (*of_elements)(const std::any& settings) = nullptr;
  const Patterns& (*elementwise)(const std::any& settings) = nullptr;
  // The optimizer as a Python expression for PyTorch: "optim.Adam(model.parameters(), lr=0.01)".
  // Null: no one expression says it.
  std::string (*torch)(const std::any& settings) = nullptr;
  // Python source of the class that the expression uses, if PyTorch has no such optimizer.
  std::string_view torch_class{};
  // Index in states() of averages of the weights that evaluations use and the run saves; -1: none.
  int (*average_state)(const std::any& settings);
  // Up to this step these averages are the weights; 0 without averages.
  double (*averages_after)(const std::any& settings);
  bool has_momentum = false;  // has a momentum or beta1, which schedules can change
  // The lr of step() is not that of step t but of the step before it; of step 1 its own.
  bool uses_previous_lr = false;
};

std::span<const OptimizerType> optimizer_table();  // generated from optim/meson.build
std::vector<const RegistryEntry*> optimizer_registry();

}  // namespace dpt
