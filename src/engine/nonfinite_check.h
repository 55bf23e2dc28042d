// Numbers that are none: where they are, and how that is told.
#pragma once

#include <cstdint>
#include <span>

#include "engine/step_executor.h"
#include "session/buffers.h"
#include "session/session.h"

namespace dpt {

inline constexpr int64_t kForward =
    1000000;  // Trouble::instruction: by micro-batch, then in the order of the forward part

// REQUIRES: host memory.
bool all_finite(const TensorView& v);

// Notes the first of these samples whose stored input, and target, is not finite.
void look_at_samples(const Dataset& data, std::span<const uint32_t> samples, Trouble& found);

// What the shards have found, taken together: the first instruction of all.
Trouble first_trouble(const Buffers& buffers, int shards);

Finding describe_trouble(const Session& session, const Trouble& found);

}  // namespace dpt
