// The scale of the loss in mixed precision, so that small gradients are not rounded to 0 as halves:
// torch.amp.GradScaler with its names, defaults and rules.
#pragma once

#include <cstdint>

namespace dpt {

struct ScalerSettings {
  bool on = false;
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // steps without overflow until it grows
};

// Every worker has its own and all agree, since all see the same overflows.
class GradientScaler {
 public:
  explicit GradientScaler(const ScalerSettings& s)
      : settings_(s), scale_(s.on ? s.init_scale : 1) {}

  double scale() const { return scale_; }
  int64_t growth_tracker() const { return tracker_; }
  int64_t skipped() const { return skipped_; }  // steps, over the whole run
  int64_t skipped_in_a_row() const { return in_a_row_; }

  // All that changes, for one that goes on with it.
  struct State {
    double scale = 1;
    int64_t growth_tracker = 0, skipped = 0, skipped_in_a_row = 0;
  };
  State state() const { return {scale_, tracker_, skipped_, in_a_row_}; }
  void restore(const State& s) {
    skipped_ = s.skipped;  // also where nothing is scaled any more: these steps changed nothing
    if (!settings_.on) return;
    scale_ = s.scale;
    tracker_ = s.growth_tracker;
    in_a_row_ = s.skipped_in_a_row;
  }

  // After a step. overflowed: the gradients were not finite, and nothing was updated.
  void update(bool overflowed);

 private:
  ScalerSettings settings_;
  double scale_;
  int64_t tracker_ = 0, skipped_ = 0, in_a_row_ = 0;
};

}  // namespace dpt
