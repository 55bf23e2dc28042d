// Loss scaling for mixed precision: keeps small fp16 gradients from being rounded to 0. Names,
// defaults and rules are those of torch.amp.GradScaler.
#pragma once

#include <cstdint>

namespace dpt {

struct ScalerSettings {
  bool on = false;
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // consecutive steps without overflow before the scale grows
};

// The loss scale of a run. Each worker has its own; all stay equal, because all workers see the
// same overflows. Not thread-safe.
class GradientScaler {
 public:
  explicit GradientScaler(const ScalerSettings& s)
      : settings_(s), scale_(s.on ? s.init_scale : 1) {}

  double scale() const { return scale_; }
  int64_t growth_tracker() const { return tracker_; }
  int64_t skipped() const { return skipped_; }  // skipped steps of the whole run
  int64_t skipped_in_a_row() const { return in_a_row_; }

  // Everything that changes, for checkpoints.
  struct State {
    double scale = 1;
    int64_t growth_tracker = 0, skipped = 0, skipped_in_a_row = 0;
  };
  State state() const {
    return {.scale = scale_,
            .growth_tracker = tracker_,
            .skipped = skipped_,
            .skipped_in_a_row = in_a_row_};
  }
  void restore(const State& s) {
    skipped_ = s.skipped;  // also without scaling: these steps did not update the weights
    if (!settings_.on) return;
    scale_ = s.scale;
    tracker_ = s.growth_tracker;
    in_a_row_ = s.skipped_in_a_row;
  }

  // Call after each step. overflowed: gradients were not finite, so nothing was updated.
  void update(bool overflowed);

 private:
  ScalerSettings settings_;
  double scale_;
  int64_t tracker_ = 0, skipped_ = 0, in_a_row_ = 0;
};

}  // namespace dpt
