// What convolutions and transposed convolutions share: channel groups, weight and bias.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/fail.h"
#include "layers/kaiming.h"
#include "layers/layer.h"
#include "layers/window.h"

namespace dpt::layers {

inline void check_groups(int64_t out_channels, int64_t groups, const Owner& owner, Diagnostics& d) {
  if (out_channels % groups != 0)
    d.error(owner.at("groups"),
            fmt::format("out_channels {} is not divisible by groups {}", out_channels, groups));
}

// The channels of an image [N, C, ...]. Throws Error{spec} if they cannot be divided.
inline int64_t grouped_channels(std::string_view layer, const Shape& image, int64_t groups) {
  const int64_t channels = image[1];
  if (channels % groups != 0)
    fail(Fault::spec, "{}: the {} channels of {} cannot be divided evenly into {} groups", layer,
         channels, image.str(), groups);
  return channels;
}

// {x, weight [first, second, kernel...]} and, unless `bias_channels` is 0, the bias. Initialized as
// PyTorch does it: fan_in is the product of all dimensions but the first, also of transposed
// convolutions, where the second are output channels.
inline std::vector<ValueId> convolution_inputs(GraphBuilder& g, ValueId x, int64_t first,
                                               int64_t second, const Extents& kernel,
                                               int64_t bias_channels) {
  std::vector<int64_t> extents(kernel.end() - (g.shape(x).rank() - 2), kernel.end());
  double fan_in = static_cast<double>(second);
  for (const int64_t k : extents) fan_in *= static_cast<double>(k);
  extents.insert(extents.begin(), {first, second});
  std::vector<ValueId> out = {x, g.parameter("weight", Shape(extents), weight_init(fan_in))};
  if (bias_channels > 0) out.push_back(g.parameter("bias", {bias_channels}, bias_init(fan_in)));
  return out;
}

}  // namespace dpt::layers
