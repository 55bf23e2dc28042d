#include "train/noise_scale.h"

#include <cmath>

namespace dpt {

// The mean gradient of a batch of B samples has the expected squared norm |G|^2 + tr(Sigma) / B.
// Two sizes, those of a shard and of the batch, give two equations. Over shards of different sizes,
// 1 / B is the mean of 1 / samples.
void NoiseScale::add(const GradientMeasures& m) {
  const double inverse = 1 / m.samples;
  if (m.shards < 2 || !(m.inverse_samples > inverse)) return;
  if (!std::isfinite(m.square) || !std::isfinite(m.shard_square) || m.shard_square == 0) return;
  const double difference = m.inverse_samples - inverse;
  const double trace = (m.shard_square - m.square) / difference;
  const double square = (m.inverse_samples * m.square - inverse * m.shard_square) / difference;
  const double newest = begun_ ? kNewest : 1;
  trace_ += newest * (trace - trace_);
  square_ += newest * (square - square_);
  begun_ = true;
}

double NoiseScale::value() const {
  return begun_ && square_ > 0 ? trace_ / square_ : std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> NoiseScale::state() const {
  return begun_ ? std::vector<double>{trace_, square_} : std::vector<double>{};
}

void NoiseScale::restore(const std::vector<double>& state) {
  begun_ = state.size() == 2;
  trace_ = begun_ ? state[0] : 0;
  square_ = begun_ ? state[1] : 0;
}

}  // namespace dpt
