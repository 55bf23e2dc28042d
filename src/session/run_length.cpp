#include "session/run_length.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/count.h"

namespace dpt {

// The limit 2^40 is 13 days at a million steps per second. Larger numbers are mistakes, and
// products with them might overflow 64 bits.
RunLength make_length(const Spec& spec, int64_t steps_of_epoch, Diagnostics& d) {
  RunLength out;
  constexpr int64_t kMost = int64_t{1} << 40;
  const std::optional<int64_t>&epochs = spec.epochs, &steps = spec.steps;
  const bool too_many_epochs = !epochs || *epochs > kMost / steps_of_epoch;
  const bool too_many_steps = !steps || *steps > kMost;
  if (too_many_epochs && too_many_steps) {
    d.error(
        spec.at(steps ? "steps" : "epochs"),
        steps ? fmt::format("{} steps are too many: a run may have at most 2^40", *steps)
              : fmt::format("{} of {} are too many: a run may have at most 2^40 steps",
                            counted(epochs.value_or(1), "epoch"), counted(steps_of_epoch, "step")));
    return out;
  }
  out.steps =
      std::min(too_many_epochs ? kMost : *epochs * steps_of_epoch, too_many_steps ? kMost : *steps);
  out.epochs = (out.steps + steps_of_epoch - 1) / steps_of_epoch;
  return out;
}

}  // namespace dpt
