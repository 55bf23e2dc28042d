// The text of `dptrain data`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "data/summary.h"
#include "formats/json.h"

namespace dpt {

struct DataTextStyle {
  size_t columns = 80;  // of a line; tables and bars are made to fit, if it is at least 40
  bool ascii = false;   // bars of # instead of blocks
};

// A set of a run: its size, its classes with bars, ranges of its values. name: "training".
std::string data_text(const std::string& name, const Dataset& dataset, const DataSummary& summary,
                      const DataTextStyle& style);

// The same as JSON: {"set": "training", "samples": 60000, "shape": [28, 28], "type": "u8",
// "description": ..., "classes": [{"name": ..., "samples": ...}], "inputs": [{"name": ..., "min":
// ...}], ...}.
Json data_json(const std::string& name, const Dataset& dataset, const DataSummary& summary);

// "after transforms: [1, 28, 28] f32, from -0.42 to 2.82, mean 0.001, standard deviation 1"
std::string transformed_text(const TensorDesc& sample, const ValueRange& range,
                             const DataTextStyle& style);

// "sampler weighted: an epoch draws 3600 samples with replacement, all classes equally often".
// samples: those that are trained on.
std::string weighted_text(int64_t samples, const DataTextStyle& style);

}  // namespace dpt
