// What a spec can name under `precision:`.
#pragma once

#include <any>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/passes/precision.h"
#include "optim/gradient_scaler.h"
#include "spec/nameable.h"

namespace dpt {

// The settings of bf16 and fp16.
struct MixedPrecision {
  PrecisionPolicy::Level level = PrecisionPolicy::Level::autocast;
  std::optional<bool> cuda_lists;  // empty: the lists of the device that it runs on
  bool emulate = false;            // where nothing computes in the half
  ScalerSettings scaler;
};

struct PrecisionType : Nameable {
  DType dtype;                                        // of products
  MixedPrecision (*mixed)(const std::any& settings);  // null: nothing is mixed
};

std::span<const PrecisionType> precision_table();
std::vector<const Nameable*> precision_words();

}  // namespace dpt
