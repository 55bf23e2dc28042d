// The sets of samples that an evaluation can use.
#pragma once

#include <string_view>

namespace dpt {

enum class EvaluatedSet { test, validation, training };

// "test", "validation" or "training".
constexpr std::string_view name_of(EvaluatedSet set) {
  constexpr std::string_view kNames[] = {"test", "validation", "training"};
  return kNames[static_cast<int>(set)];
}

}  // namespace dpt
