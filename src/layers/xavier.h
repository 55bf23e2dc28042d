// torch.nn.init.xavier_uniform_ and xavier_normal_ (Glorot and Bengio, 2010), evaluated as in
// PyTorch.
#pragma once

#include <cmath>

#include "graph/graph.h"

namespace dpt::layers {

inline double xavier_deviation(double fan_in, double fan_out, double gain = 1) {
  return gain * std::sqrt(2.0 / (fan_in + fan_out));
}

inline Init xavier_uniform(double fan_in, double fan_out, double gain = 1) {
  const double bound = std::sqrt(3.0) * xavier_deviation(fan_in, fan_out, gain);
  return {.kind = Init::Kind::uniform, .a = -bound, .b = bound};
}

}  // namespace dpt::layers
