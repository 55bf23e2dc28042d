// What a spec can name under `optimizer:`. One file in optim/optimizers/ holds one OptimizerType.
//
// Weights, gradients and states lie in flat buffers of one layout, so that an update is one pass
// over a range of elements, which each worker does for its own range.
#pragma once

#include <any>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "spec/nameable.h"

namespace dpt {

struct OptimizerType : Nameable {
  // Flat f32 buffers beside the weights, in the order of torch's state; their names in checkpoints:
  // {"exp_avg", "exp_avg_sq"}. The list depends on the settings (amsgrad, momentum).
  std::vector<std::string> (*states)(const std::any& settings);
  double (*initial_state)(const std::any& settings);  // what they hold at first: 0, adagrad's initial_accumulator_value
  double (*lr)(const std::any& settings);             // the base learning rate, which schedules scale
  // As an expression of PyTorch: "optim.Adam(model.parameters(), lr=0.01)".
  std::string (*torch)(const std::any& settings);
};

std::span<const OptimizerType> optimizer_table();  // generated from optim/meson.build
std::vector<const Nameable*> optimizer_words();

}  // namespace dpt
