// The registry of `precision:`.
#pragma once

#include <any>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/passes/precision.h"
#include "optim/gradient_scaler.h"
#include "spec/registry_entry.h"

namespace dpt {

// The settings of bf16 and fp16.
struct MixedPrecision {
  PrecisionPolicy::Level level = PrecisionPolicy::Level::autocast;
  std::optional<bool> cuda_lists;  // empty: the autocast lists of the device that is used
  bool emulate = false;            // run even if the device cannot compute in the half
  // Instruction of CPUs for products of bf16: the faster one, that of fp32 or that of bf16.
  enum class Products { automatic, fma, bf16 } products = Products::automatic;
  ScalerSettings scaler;
};

struct PrecisionType : RegistryEntry {
  DType dtype;                                                  // of products
  MixedPrecision (*mixed)(const std::any& settings) = nullptr;  // null: nothing is mixed
};

std::span<const PrecisionType> precision_table();
std::vector<const RegistryEntry*> precision_registry();

}  // namespace dpt
