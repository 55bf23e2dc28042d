// PyTorch's default initialization of linear and convolution layers: kaiming_uniform_(a=sqrt(5))
// for the weight, and uniform with bound 1 / sqrt(fan_in) for the bias. fan_in: how many inputs
// each output depends on.
#pragma once

#include <cmath>

#include "graph/graph.h"

namespace dpt::layers {

// Mathematically the bound is 1 / sqrt(fan_in), but PyTorch's expression rounds differently.
inline Init weight_init(double fan_in) {
  const double gain = std::sqrt(2 / (1 + std::sqrt(5.0) * std::sqrt(5.0)));
  const double bound = std::sqrt(3.0) * (gain / std::sqrt(fan_in));
  return {.kind = Init::Kind::uniform, .a = -bound, .b = bound};
}

inline Init bias_init(double fan_in) {
  const double bound = 1 / std::sqrt(fan_in);
  return {.kind = Init::Kind::uniform, .a = -bound, .b = bound};
}

}  // namespace dpt::layers
