// Finds where two runs differ: their losses by step or epoch, their weights by tensor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/safetensors.h"

namespace dpt {

// a and b are within the tolerance if |a - b| <= absolute + relative * |b|, or if both are NaN. The
// defaults are those of torch.testing.assert_close for float32.
struct Tolerance {
  double relative = 1.3e-6, absolute = 1e-5;
};

using LossesBy = std::map<int64_t, double>;
struct RecordedLosses {
  LossesBy steps, epochs;
};

// Reads lines like those of metrics.jsonl: {"step": 1, "loss": 2.3} or {"epoch": 1, "loss": 2.3},
// ignoring other keys. Throws Error{data} that names a line which is neither, or which repeats a
// step or an epoch.
RecordedLosses read_losses(const std::string& path);

struct LossPair {
  int64_t at = 0;  // step or epoch
  double a = 0, b = 0, distance = 0;
};
struct LossParting {
  int64_t compared = 0;                                  // steps or epochs that both have
  std::optional<LossPair> first, first_beyond, largest;  // empty: there is none
};
LossParting compare_losses(const LossesBy& a, const LossesBy& b, Tolerance tolerance);

struct TensorParting {
  std::string name;
  std::string unlike{};  // why elements were not compared ("only in A"); empty: they were
  TensorDesc desc{};
  int64_t differ = 0, beyond = 0;  // number of elements with other bits, and beyond the tolerance
  double distance = 0;             // the largest; infinite if only one of the elements is NaN
  uint64_t ulps = 0;               // the largest distance in units in the last place; floats only
};
// The tensors in the order of `a`, then those that only `b` has.
std::vector<TensorParting> compare_weights(const SafeTensors& a, const SafeTensors& b,
                                           Tolerance tolerance);

}  // namespace dpt
