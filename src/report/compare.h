// Where two runs part: their losses by step or epoch, their weights by tensor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/safetensors.h"

namespace dpt {

// Within it are a and b with |a - b| <= absolute + relative * |b|, and two that are no numbers.
// What torch.testing.assert_close takes for float32.
struct Tolerance {
  double relative = 1.3e-6, absolute = 1e-5;
};

using LossesBy = std::map<int64_t, double>;
struct RecordedLosses {
  LossesBy steps, epochs;
};

// Reads lines as metrics.jsonl has them, {"step": 1, "loss": 2.3} or {"epoch": 1, "loss": 2.3};
// what else a line holds does not matter. Throws Error{data} that names the line which is neither,
// or comes twice.
RecordedLosses read_losses(const std::string& path);

struct LossPair {
  int64_t at = 0;  // step or epoch
  double a = 0, b = 0, distance = 0;
};
struct LossParting {
  int64_t compared = 0;                                  // what both have
  std::optional<LossPair> first, first_beyond, largest;  // empty: there is none
};
LossParting compare_losses(const LossesBy& a, const LossesBy& b, Tolerance tolerance);

struct TensorParting {
  std::string name;
  std::string unlike{};  // why elements can't be compared: "only in A"; empty: they were
  TensorDesc desc{};
  int64_t differ = 0, beyond = 0;  // elements: with other bits, outside of the tolerance
  double distance = 0;             // the largest; infinite where one is no number
  uint64_t ulps = 0;               // the largest, in numbers of the type in between; floats only
};
// In the order of a, then what only b has.
std::vector<TensorParting> compare_weights(const SafeTensors& a, const SafeTensors& b,
                                           Tolerance tolerance);

}  // namespace dpt
