// The non-finite check: finds where a nan or infinity came from and describes it to the user.
#pragma once

#include <cstdint>
#include <span>

#include "engine/step_executor.h"
#include "session/buffers.h"
#include "session/compiled_model.h"
#include "session/run_settings.h"

namespace dpt {

// NonFinite::instruction is micro-batch * kForward + the index in Program::forward.
inline constexpr int64_t kForward = 1000000;

// True if every element is finite; integers always are. REQUIRES: `v` is in host memory.
bool all_finite(const TensorView& v);

// Records in `found` the first of these samples whose stored input is not finite, and the first
// whose stored target is not. Entries of `found` that are already set are kept.
void check_samples_finite(const Dataset& data, std::span<const uint32_t> samples, NonFinite& found);

// Merges the findings of shards 0..shards-1. Of the instructions found, the earliest wins.
NonFinite first_non_finite(const Buffers& buffers, int shards);

NonFiniteReport describe_non_finite(const RunSettings& settings, const CompiledModel& model,
                                    const NonFinite& found);

}  // namespace dpt
