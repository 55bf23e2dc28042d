// Layers on images [N, C, H, W] and volumes [N, C, D, H, W], for random specs.
#pragma once

#include <cstdint>
#include <vector>

#include "oracles/random_numbers.h"

namespace dpt {

// Draws layers that fit one another, and knows the shape behind them. Extents are small.
class RandomImages {
 public:
  // dims: 2 for images, 3 for volumes. batch_norm: else there is none.
  RandomImages(RandomNumbers& random, int64_t dims, bool batch_norm);

  // [C, extents...]
  std::vector<int64_t> shape() const;
  int64_t elements() const;
  RandomNumbers::Words layers();

 private:
  std::string layer();
  std::string convolution();
  std::string norm();
  std::string transposed();
  std::string pool();
  // A layer's name for these dimensions: "conv3d".
  std::string name(const std::string& begin) const;

  RandomNumbers& random_;
  bool batch_norm_;
  int64_t channels_;
  std::vector<int64_t> extents_;
};

}  // namespace dpt
