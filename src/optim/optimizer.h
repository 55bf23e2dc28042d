// What a spec can name under `optimizer:`. One file in optim/optimizers/ holds one OptimizerType.
//
// Weights, gradients and states lie in flat buffers of one layout, so that an update is one pass
// over a range of elements, which each worker does for its own range.
#pragma once

#include <any>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/optimizer_step.h"
#include "spec/nameable.h"

namespace dpt {

struct OptimizerType : Nameable {
  // Flat f32 buffers beside the weights, by the place that the formula gives them; torch's names,
  // which are those in checkpoints: {"exp_avg", "exp_avg_sq"}. The list depends on the settings; a
  // place whose name is empty has no buffer. cycles_momentum: the schedule sets the momentum, so
  // that there is one even where the settings say 0.
  std::vector<std::string> (*states)(const std::any& settings, bool cycles_momentum);
  double (*initial_state)(
      const std::any& settings);  // what they hold at first: 0, adagrad's initial_accumulator_value
  double (*lr)(const std::any& settings);  // the base learning rate, which schedules scale
  // The scalars of step t = 1, 2, ... at learning rate lr. momentum: what the schedule says, in the
  // place of the momentum or beta1 of the settings.
  OptimizerStep (*step)(const std::any& settings, int64_t t, double lr,
                        std::optional<double> momentum);
  // As an expression of PyTorch: "optim.Adam(model.parameters(), lr=0.01)".
  std::string (*torch)(const std::any& settings);
  bool has_momentum = false;  // or beta1: what one_cycle can cycle
};

std::span<const OptimizerType> optimizer_table();  // generated from optim/meson.build
std::vector<const Nameable*> optimizer_words();

}  // namespace dpt
