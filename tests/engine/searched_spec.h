// The spec, the messages and the broken values of the tests of the non-finite searches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "data/dataset.h"

namespace dpt {

// A step of 8 samples.
inline constexpr const char* kSearchedSpec = R"(
data:
  dataset: {random: {samples: 8, in_features: 3, out_features: 2}}
  batch_size: 8
  shuffle: false
model: [{linear: 6, name: first}, {tanh: null, name: middle}, {linear: 2, name: last}]
loss: mse_loss
optimizer: {sgd: 0.1}
epochs: 1
)";

inline constexpr float kHuge = 3e38F;  // finite, but not twice that
inline constexpr const char* kNothing =
    "every layer's output is finite, so the non-finite value comes from the loss itself";

inline std::string first_not_finite(const std::string& name, const std::string& type) {
  return "the output of layer '" + name + "' (" + type + ") is the first that is not finite";
}

// Overwrites the first number of a sample in a data set that only the caller's session has.
inline void set_number(const Table& table, int64_t row, float value) {
  std::memcpy(const_cast<std::byte*>(table.data.get()) +
                  static_cast<size_t>(row * table.step()) * sizeof value,
              &value, sizeof value);
}

}  // namespace dpt
